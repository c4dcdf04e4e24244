// Arrays in the memory of a GPU, as generated C++ headers of GPU programs take them.
//
// What: DeviceArray<T, 4, 10> is the address of 40 elements on the device, row major. It is made of such an address,
//   explicitly, and of nothing that lies in the host's memory; Array and DeviceArray do not convert into each other.
// Guarantees: C++17, one word, freely copied; nothing is read or written through it on the host.
// Generated headers hold this text behind that of arrays.h, whose KILN_ARRAYS_VERSION counts changes of both.
#ifndef KILN_DEVICE_ARRAYS_H_
#define KILN_DEVICE_ARRAYS_H_

namespace kiln {

template <typename T, std::size_t... E>
class DeviceArray {
 public:
  using element_type = T;
  using Mutable = DeviceArray<typename std::remove_const<T>::type, E...>;
  static constexpr std::size_t kRank = sizeof...(E);
  static constexpr std::size_t kCount = (E * ... * 1);
  static constexpr std::size_t kBytes = kCount * sizeof(T);

  // Of no elements: a run refuses it, unless the array has none.
  DeviceArray() = default;
  // An address on the device, as a pointer or as the number that CUDA's driver has (CUdeviceptr). The caller vouches
  // for kCount elements there.
  template <typename Address>
  explicit DeviceArray(const Address& address) : data_(Take(address)) {}
  // The same array where the model only reads it.
  template <typename U, std::size_t... F>
  DeviceArray(const DeviceArray<U, F...>& other) : data_(Cast(other.pointer())) {
    internal::CheckElement<T, U>();
    static_assert(std::is_same<internal::Extents<E...>, internal::Extents<F...>>::value,
                  "kiln: this array has other extents than the model's");
  }

  // Not called data(): nothing that takes containers shall take an array that the host cannot read.
  T* pointer() const { return data_; }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }
  static constexpr std::size_t size() { return kCount; }
  static constexpr std::size_t extent(std::size_t dimension) {
    const std::size_t all[] = {E..., 1};
    return all[dimension];
  }

 private:
  template <typename Address>
  static T* Take(const Address& address) {
    if constexpr (std::is_pointer<Address>::value) {
      using Element = typename std::remove_pointer<Address>::type;
      using Named = typename std::conditional<std::is_const<Element>::value, const T, T>::type;
      internal::CheckElement<T, typename std::conditional<std::is_void<Element>::value, Named, Element>::type>();
      return Cast(address);
    } else if constexpr (std::is_integral<Address>::value && std::is_unsigned<Address>::value &&
                         sizeof(Address) == sizeof(T*)) {
      return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
    } else {
      static_assert(internal::Never<Address>::value,
                    "kiln: this is no address on the device: a pointer, or a number as CUdeviceptr is");
      return nullptr;
    }
  }
  // What CheckElement refuses shall be its error alone.
  static T* Cast(const void* address) { return static_cast<T*>(const_cast<void*>(address)); }
  T* data_ = nullptr;
};

namespace internal {

template <typename T>
struct NotDeduced {
  using Type = T;
};

}  // namespace internal

}  // namespace kiln

#endif  // KILN_DEVICE_ARRAYS_H_
