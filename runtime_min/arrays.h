// Arrays as generated C++ headers take them: element types that C++ lacks, views whose types state extents, owners.
//
// What: Array<T, 4, 10> is a view of 40 elements, row major. It is made of what programs have (C arrays, std::array,
//   std::vector, std::span, std::mdspan, an Owned one); what cannot be one does not compile, and says why. Extents that
//   are only known at run time are checked: a view of others does not fit, and a run with it returns KILN_EXTENT.
// Guarantees: C++17, no exceptions, nothing allocated but by Owned and Allocate; views are two words and freely copied.
// Generated headers hold this text; a program that includes several of them has the types once.
#ifndef KILN_ARRAYS_H_
#define KILN_ARRAYS_H_

// Counts changes of what follows.
#define KILN_ARRAYS_VERSION 2

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace kiln {

// Memory that std::free takes back, aligned to a cache line; null where there is none. From 4 MiB on it is aligned to
// huge pages, and Linux is asked for them: programs that stream through such arrays spend up to half of their time on
// finding small pages.
inline void* Allocate(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kLine;
  const std::size_t whole = bytes ? (bytes + alignment - 1) / alignment * alignment : kLine;
  void* const memory = std::aligned_alloc(alignment, whole);
#ifdef MADV_HUGEPAGE
  if (memory && alignment == kHugePage) static_cast<void>(madvise(memory, whole, MADV_HUGEPAGE));
#endif
  return memory;
}

// What small floats do without infinities: e5m2 has them, e4m3fn has NaN alone, fnuz has it in the place of -0.
enum class FloatKind { kIeee, kFn, kFnuz, kFinite };

// A float of 16 bits or fewer, with a sign bit. Conversion from float rounds to nearest, ties to even; what is too
// large becomes infinite, NaN where there is no infinity, or the largest number where there is neither.
template <int kExponent, int kMantissa, int kBias, FloatKind kKind>
struct SmallFloat {
  using Bits = typename std::conditional<(kExponent + kMantissa > 7), std::uint16_t, std::uint8_t>::type;
  Bits bits;

  SmallFloat() = default;
  explicit SmallFloat(float value) : bits(FromFloat(value)) {}
  static SmallFloat FromBits(Bits b) {
    SmallFloat out;
    out.bits = b;
    return out;
  }
  explicit operator float() const {
    const std::uint32_t magnitude = bits & (kSign - 1), exponent = magnitude >> kMantissa;
    const bool negative = (bits & kSign) != 0;
    if (IsNan(magnitude, negative)) return Raw(0x7fc00000u);
    if (kKind == FloatKind::kIeee && magnitude == kInfinity) return Raw(negative ? 0xff800000u : 0x7f800000u);
    const std::uint32_t digits = (magnitude & (kUnit - 1)) | (exponent ? kUnit : 0);
    const int power = static_cast<int>(exponent ? exponent : 1) - kBias - kMantissa;
    const double value = static_cast<double>(digits) * PowerOfTwo(power);
    return static_cast<float>(negative ? -value : value);
  }

 private:
  static constexpr std::uint32_t kSign = 1u << (kExponent + kMantissa), kUnit = 1u << kMantissa;
  static constexpr std::uint32_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr std::uint32_t kLargest = kKind == FloatKind::kIeee ? kInfinity - 1
                                            : kKind == FloatKind::kFn ? kSign - 2
                                                                      : kSign - 1;
  static constexpr std::uint32_t kBeyond = kKind == FloatKind::kIeee   ? kInfinity
                                           : kKind == FloatKind::kFn   ? kSign - 1
                                           : kKind == FloatKind::kFnuz ? kSign
                                                                       : kLargest;

  static bool IsNan(std::uint32_t magnitude, bool negative) {
    if (kKind == FloatKind::kIeee) return magnitude > kInfinity;
    if (kKind == FloatKind::kFn) return magnitude == kSign - 1;
    return kKind == FloatKind::kFnuz && negative && magnitude == 0;
  }
  static float Raw(std::uint32_t b) {
    float f;
    std::memcpy(&f, &b, sizeof f);
    return f;
  }
  static double PowerOfTwo(int power) {
    const std::uint64_t b = static_cast<std::uint64_t>(power + 1023) << 52;
    double d;
    std::memcpy(&d, &b, sizeof d);
    return d;
  }
  static Bits FromFloat(float f) {
    std::uint32_t from;
    std::memcpy(&from, &f, sizeof from);
    const std::uint32_t sign = from >> 31 ? kSign : 0, magnitude = from & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
      return static_cast<Bits>(kKind == FloatKind::kIeee ? kInfinity | (kUnit >> 1) : kBeyond);
    std::uint32_t out = kBeyond;
    if (magnitude != 0x7f800000u) {
      const int exponent = magnitude >> 23 ? static_cast<int>(magnitude >> 23) - 127 : -126;
      const std::uint64_t digits = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0);
      const int lowest = 1 - kBias, scale = exponent < lowest ? lowest : exponent,
                drop = 23 - kMantissa + scale - exponent;
      std::uint64_t kept = 0;
      if (drop <= 0) {
        kept = digits << -drop;
      } else if (drop < 32) {
        const std::uint64_t half = std::uint64_t{1} << (drop - 1), rest = digits & (2 * half - 1);
        kept = digits >> drop;
        kept += rest > half || (rest == half && (kept & 1)) ? 1 : 0;
      }
      // A number below the unit is subnormal; the bit that a normal one does not store counts one exponent.
      const std::uint64_t whole = (static_cast<std::uint64_t>(scale - lowest) << kMantissa) + kept;
      out = whole > kLargest ? kBeyond : static_cast<std::uint32_t>(whole);
    }
    if (kKind == FloatKind::kFnuz && (out == 0 || out == kSign)) return static_cast<Bits>(out);
    return static_cast<Bits>(out | sign);
  }
};

using f16 = SmallFloat<5, 10, 15, FloatKind::kIeee>;
using bf16 = SmallFloat<8, 7, 127, FloatKind::kIeee>;
using f8e5m2 = SmallFloat<5, 2, 15, FloatKind::kIeee>;
using f8e4m3 = SmallFloat<4, 3, 7, FloatKind::kIeee>;
using f8e3m4 = SmallFloat<3, 4, 3, FloatKind::kIeee>;
using f8e4m3fn = SmallFloat<4, 3, 7, FloatKind::kFn>;
using f8e4m3b11fnuz = SmallFloat<4, 3, 11, FloatKind::kFnuz>;
using f8e4m3fnuz = SmallFloat<4, 3, 8, FloatKind::kFnuz>;
using f8e5m2fnuz = SmallFloat<5, 2, 16, FloatKind::kFnuz>;
using f6e2m3fn = SmallFloat<2, 3, 1, FloatKind::kFinite>;
using f6e3m2fn = SmallFloat<3, 2, 3, FloatKind::kFinite>;
using f4e2m1fn = SmallFloat<2, 1, 1, FloatKind::kFinite>;
// A power of two as a scale: 2^(bits - 127); all ones are NaN.
struct f8e8m0fnu {
  std::uint8_t bits;
};

template <typename T, std::size_t... E>
class Array;
template <typename T, std::size_t... E>
class Owned;

namespace internal {

template <typename...>
using Void = void;
template <typename...>
struct Never : std::false_type {};
template <typename T>
using Bare = typename std::remove_cv<typename std::remove_reference<T>::type>::type;

// Extents of a C array or of nested std::arrays, and what they hold.
template <std::size_t...>
struct Extents {};
template <std::size_t N, typename Rest>
struct Before;
template <std::size_t N, std::size_t... E>
struct Before<N, Extents<E...>> {
  using Type = Extents<N, E...>;
};
template <typename S, typename = void>
struct Nested {
  using Element = S;
  using Shape = Extents<>;
};
template <typename S, std::size_t N>
struct Nested<S[N], void> {
  using Element = typename Nested<S>::Element;
  using Shape = typename Before<N, typename Nested<S>::Shape>::Type;
};
template <typename S>
struct Nested<S, Void<decltype(std::tuple_size<Bare<S>>::value), decltype(std::declval<S&>().data()[0])>> {
  using Inner = typename std::remove_reference<decltype(std::declval<S&>().data()[0])>::type;
  using Element = typename Nested<Inner>::Element;
  using Shape = typename Before<std::tuple_size<Bare<S>>::value, typename Nested<Inner>::Shape>::Type;
};
template <typename Shape>
struct Count;
template <std::size_t... E>
struct Count<Extents<E...>> : std::integral_constant<std::size_t, (E * ... * 1)> {};
// All elements in a row, or just these extents.
template <typename Given, typename Wanted>
struct Fits : std::false_type {};
template <std::size_t... E>
struct Fits<Extents<E...>, Extents<E...>> : std::true_type {};
template <std::size_t N, std::size_t A, std::size_t B, std::size_t... E>
struct Fits<Extents<N>, Extents<A, B, E...>> : std::integral_constant<bool, N == Count<Extents<A, B, E...>>::value> {};
template <>
struct Fits<Extents<1>, Extents<>> : std::true_type {};

template <typename S, typename = void>
struct IsNested : std::is_array<S> {};
template <typename S>
struct IsNested<S, Void<decltype(std::tuple_size<Bare<S>>::value), decltype(std::declval<S&>().data()[0])>>
    : std::true_type {};
// The first element of nested arrays; null if they have none.
template <typename T, typename S>
T* First(S& source) {
  if constexpr (!IsNested<S>::value)
    return &source;
  else if constexpr (Count<typename Nested<S>::Shape>::value == 0)
    return nullptr;
  else if constexpr (std::is_array<S>::value)
    return First<T>(source[0]);
  else
    return First<T>(source.data()[0]);
}

template <typename T, typename Element>
constexpr void CheckElement() {
  static_assert(std::is_same<typename std::remove_const<Element>::type, typename std::remove_const<T>::type>::value,
                "kiln: this array's elements have another type than the model's");
  static_assert(std::is_const<T>::value || !std::is_const<Element>::value,
                "kiln: the model writes to this array, which is const");
}

template <typename S, typename = void>
struct IsContiguous : std::false_type {};
template <typename S>
struct IsContiguous<S, Void<decltype(std::declval<S&>().data() + std::declval<S&>().size())>> : std::true_type {};
template <typename S, typename = void>
struct IsMdspan : std::false_type {};
template <typename S>
struct IsMdspan<S, Void<decltype(std::declval<S&>().data_handle()), decltype(std::declval<S&>().stride(0)),
                        decltype(Bare<S>::rank())>> : std::true_type {};
template <typename S>
struct IsArray : std::false_type {};
template <typename T, std::size_t... E>
struct IsArray<Array<T, E...>> : std::true_type {};
template <typename T, std::size_t... E>
struct IsArray<Owned<T, E...>> : std::true_type {};

template <typename From, typename To>
using Converts = std::is_convertible<From (*)[], To (*)[]>;

}  // namespace internal

template <typename T, std::size_t... E>
class Array {
 public:
  using element_type = T;
  using Owned = kiln::Owned<typename std::remove_const<T>::type, E...>;
  static constexpr std::size_t kRank = sizeof...(E);
  static constexpr std::size_t kCount = (E * ... * 1);

  // Of no elements: a run refuses it, unless the array has none.
  Array() = default;
  Array(const Array&) = default;
  Array& operator=(const Array&) = default;
  // Of what has these elements, and keeps them while the view is used.
  template <typename Source,
            typename = typename std::enable_if<!std::is_same<internal::Bare<Source>, Array>::value>::type>
  Array(Source&& source) {
    Take(source);
  }
  // `count` elements that lie there; if they are not kCount, the view does not fit.
  static Array Of(T* data, std::size_t count) {
    Array a;
    a.Set(data, count == kCount);
    return a;
  }
  // The caller vouches for kCount elements.
  static Array Unchecked(T* data) { return Of(data, kCount); }

  // False for a view that was made of another number of elements; data() is null then.
  bool fits() const { return fits_; }
  T* data() const { return data_; }
  static constexpr std::size_t size() { return kCount; }
  static constexpr std::size_t extent(std::size_t dimension) {
    const std::size_t all[] = {E..., 1};
    return all[dimension];
  }
  T* begin() const { return data_; }
  T* end() const { return data_ + kCount; }
  // By place in memory, and by an index for each dimension.
  T& operator[](std::size_t i) const { return data_[i]; }
  template <typename... I>
  T& operator()(I... i) const {
    static_assert(sizeof...(I) == kRank, "kiln: an element has one index for each dimension");
    std::size_t place = 0, d = 0;
    ((place = place * extent(d++) + static_cast<std::size_t>(i)), ...);
    return data_[place];
  }

 private:
  void Set(T* data, bool fits) {
    data_ = fits ? data : nullptr;
    fits_ = fits;
  }
  template <typename Source>
  void Take(Source& source) {
    using S = internal::Bare<Source>;
    if constexpr (internal::IsArray<S>::value) {
      TakeArray(source);
    } else if constexpr (std::is_pointer<S>::value || std::is_null_pointer<S>::value) {
      static_assert(internal::Never<Source>::value,
                    "kiln: a pointer does not say how many elements it has; use Of(pointer, count)");
    } else if constexpr (internal::IsMdspan<Source>::value) {
      TakeMdspan(source);
    } else if constexpr (internal::IsNested<Source>::value) {
      using Given = internal::Nested<Source>;
      internal::CheckElement<T, typename Given::Element>();
      static_assert(internal::Fits<typename Given::Shape, internal::Extents<E...>>::value,
                    "kiln: this array has other extents than the model's");
      Set(internal::First<T>(source), true);
    } else if constexpr (internal::IsContiguous<Source>::value) {
      internal::CheckElement<T, typename std::remove_reference<decltype(source.data()[0])>::type>();
      Set(source.data(), static_cast<std::size_t>(source.size()) == kCount);
    } else if constexpr (kRank == 0 && (std::is_arithmetic<S>::value || std::is_same<S, internal::Bare<T>>::value)) {
      internal::CheckElement<T, Source>();
      Set(&source, true);
    } else {
      static_assert(internal::Never<Source>::value, "kiln: this is no array of contiguous elements");
    }
  }
  template <typename U, std::size_t... F>
  void TakeArray(Array<U, F...>& other) {
    CheckSame<U, F...>();
    Set(other.data(), other.fits());
  }
  template <typename U, std::size_t... F>
  void TakeArray(const Array<U, F...>& other) {
    CheckSame<U, F...>();
    Set(other.data(), other.fits());
  }
  template <typename U, std::size_t... F>
  void TakeArray(kiln::Owned<U, F...>& other) {
    CheckSame<U, F...>();
    Set(other.data(), true);
  }
  template <typename U, std::size_t... F>
  void TakeArray(const kiln::Owned<U, F...>& other) {
    CheckSame<const U, F...>();
    Set(other.data(), true);
  }
  template <typename U, std::size_t... F>
  static constexpr void CheckSame() {
    internal::CheckElement<T, U>();
    static_assert(std::is_same<internal::Extents<E...>, internal::Extents<F...>>::value,
                  "kiln: this array has other extents than the model's");
  }
  template <typename Source>
  void TakeMdspan(Source& source) {
    internal::CheckElement<T, typename internal::Bare<Source>::element_type>();
    static_assert(internal::Bare<Source>::rank() == kRank, "kiln: this mdspan has another rank than the model's array");
    bool fits = true;
    std::size_t stride = 1;
    for (std::size_t d = kRank; d-- > 0; stride *= extent(d))
      fits = fits && static_cast<std::size_t>(source.extent(d)) == extent(d) &&
             (extent(d) == 1 || static_cast<std::size_t>(source.stride(d)) == stride);
    Set(source.data_handle(), fits);
  }
  T* data_ = nullptr;
  bool fits_ = true;
};

// Elements anywhere in memory: `strides` between them, in elements, of each dimension. Owned::Assign copies them.
template <typename T, std::size_t... E>
struct Strided {
  const T* data;
  std::ptrdiff_t strides[sizeof...(E) ? sizeof...(E) : 1];
};

// Memory for an array, from Allocate, zero at first. Where memory runs out, data() is null, and runs refuse
// it.
template <typename T, std::size_t... E>
class Owned {
 public:
  using View = Array<T, E...>;

  Owned() {
    data_ = static_cast<T*>(Allocate(View::kCount * sizeof(T)));
    if (data_) std::memset(static_cast<void*>(data_), 0, View::kCount * sizeof(T));
  }
  Owned(Owned&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { std::free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  static constexpr std::size_t size() { return View::kCount; }
  static constexpr std::size_t extent(std::size_t dimension) { return View::extent(dimension); }
  T* begin() { return data_; }
  T* end() { return data_ + size(); }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size(); }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  template <typename... I>
  T& operator()(I... i) {
    return View::Unchecked(data_)(i...);
  }
  template <typename... I>
  const T& operator()(I... i) const {
    return Array<const T, E...>::Unchecked(data_)(i...);
  }
  // Packs elements that lie elsewhere: a slice, a transposed array, rows with gaps.
  void Assign(const Strided<T, E...>& source) {
    const std::size_t extents[] = {E..., 1};
    std::size_t index[sizeof...(E) + 1] = {};
    for (std::size_t k = 0; data_ && k < size(); ++k) {
      std::ptrdiff_t place = 0;
      for (std::size_t d = 0; d < sizeof...(E); ++d) place += static_cast<std::ptrdiff_t>(index[d]) * source.strides[d];
      data_[k] = source.data[place];
      for (std::size_t d = sizeof...(E); d-- > 0;) {
        if (++index[d] < extents[d]) break;
        index[d] = 0;
      }
    }
  }

 private:
  T* data_;
};

// A view whose first elements' count is only known at run time: of a library with several batch sizes.
template <typename T>
class AnyCount {
 public:
  AnyCount() = default;
  AnyCount(T* data, std::size_t count) : data_(data), count_(count) {}
  template <typename Source,
            typename = typename std::enable_if<!std::is_same<internal::Bare<Source>, AnyCount>::value>::type>
  AnyCount(Source&& source) {
    using S = typename std::remove_reference<Source>::type;
    if constexpr (internal::IsNested<S>::value && !internal::IsArray<internal::Bare<S>>::value) {
      using Given = internal::Nested<S>;
      internal::CheckElement<T, typename Given::Element>();
      *this = AnyCount(internal::First<T>(source), internal::Count<typename Given::Shape>::value);
    } else if constexpr (internal::IsContiguous<S>::value) {
      internal::CheckElement<T, typename std::remove_reference<decltype(source.data()[0])>::type>();
      *this = AnyCount(source.data(), static_cast<std::size_t>(source.size()));
    } else {
      static_assert(internal::Never<Source>::value,
                    "kiln: this is no array of elements that says how many they are; use {pointer, count}");
    }
  }
  T* data() const { return data_; }
  std::size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace kiln

#endif  // KILN_ARRAYS_H_
