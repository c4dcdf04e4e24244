#include "compiler/import/bytecode/container.h"

#include <array>
#include <optional>

#include "compiler/base/status.h"

namespace kiln::bytecode {

uint8_t Cursor::Byte() {
  if (pos_ >= bytes_.size()) ok_ = false;
  return ok_ ? static_cast<uint8_t>(bytes_[pos_++]) : 0;
}

uint64_t Cursor::Varint() {
  const uint8_t first = Byte();
  if (!ok_) return 0;
  if (first & 1) return first >> 1;
  // The number of trailing zeros says how many bytes follow; a first byte of zero says eight.
  const int extra = first ? __builtin_ctz(first) : 8;
  uint64_t v = first ? first : 0;
  const absl::string_view more = Bytes(static_cast<uint64_t>(extra));
  if (!ok_) return 0;
  if (!first) {
    for (int k = 7; k >= 0; --k) v = v << 8 | static_cast<uint8_t>(more[k]);
    return v;
  }
  for (int k = 0; k < extra; ++k) v |= static_cast<uint64_t>(static_cast<uint8_t>(more[k])) << (8 * (k + 1));
  return v >> (extra + 1);
}

int64_t Cursor::SignedVarint() {
  const uint64_t v = Varint();
  return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
}

absl::string_view Cursor::Bytes(uint64_t n) {
  if (!ok_ || n > left()) {
    ok_ = false;
    return {};
  }
  const absl::string_view out = bytes_.substr(pos_, n);
  pos_ += n;
  return out;
}

uint64_t Cursor::Count() {
  const uint64_t n = Varint();
  if (n > left()) ok_ = false;
  return ok_ ? n : 0;
}

absl::Status ErrorAt(const std::string& file, size_t offset, absl::string_view why) {
  return InvalidArgument(file, ":1:", offset + 1, ": error: bytecode: ", why);
}

namespace {

class Reader {
 public:
  Reader(absl::string_view bytes, const std::string& file) : file_(file), in_(bytes, 0) {}

  absl::StatusOr<Container> Read() {
    in_.Bytes(4);  // the magic number, which the caller looked at
    out_.version = in_.Varint();
    if (in_.ok() && out_.version > kNewestVersion)
      return ErrorAt(file_, 4, absl::StrCat("version ", out_.version, "; kiln reads up to ", kNewestVersion));
    for (uint8_t c = in_.Byte(); in_.ok() && c; c = in_.Byte()) out_.producer += static_cast<char>(c);
    while (in_.ok() && !in_.AtEnd()) RETURN_IF_ERROR(ReadSection());
    if (!in_.ok()) return Truncated(in_);
    for (SectionId id : {kStrings, kDialects, kAttrTypes, kAttrTypeOffsets, kIr})
      if (!sections_[id]) return ErrorAt(file_, in_.offset(), absl::StrCat("section ", id, " is missing"));
    RETURN_IF_ERROR(ReadStrings(*sections_[kStrings]));
    RETURN_IF_ERROR(ReadDialects(*sections_[kDialects]));
    RETURN_IF_ERROR(ReadTables(*sections_[kAttrTypeOffsets], *sections_[kAttrTypes]));
    if (sections_[kProperties]) RETURN_IF_ERROR(ReadProperties(*sections_[kProperties]));
    out_.ir = *sections_[kIr];
    return std::move(out_);
  }

 private:
  absl::Status Truncated(const Cursor& c) { return ErrorAt(file_, c.offset(), "the data ends too early"); }

  absl::Status ReadSection() {
    const size_t at = in_.offset();
    const uint8_t id = in_.Byte();
    const uint64_t length = in_.Varint();
    if (id & 0x80) {
      const uint64_t alignment = in_.Varint();
      if (!in_.ok() || alignment == 0 || (alignment & (alignment - 1)))
        return ErrorAt(file_, at, "a section's alignment is no power of two");
      while (in_.ok() && in_.offset() % alignment) in_.Byte();
    }
    const size_t base = in_.offset();
    const absl::string_view data = in_.Bytes(length);
    if (!in_.ok()) return Truncated(in_);
    const int which = id & 0x7f;
    if (which >= kSectionIds) return ErrorAt(file_, at, absl::StrCat("unknown section ", which));
    if (sections_[which]) return ErrorAt(file_, at, absl::StrCat("section ", which, " occurs twice"));
    sections_[which] = Cursor(data, base);
    return absl::OkStatus();
  }

  absl::Status ReadStrings(Cursor c) {
    const uint64_t n = c.Count();
    std::vector<uint64_t> sizes(n);
    for (uint64_t& s : sizes) s = c.Varint();
    absl::string_view data = c.Bytes(c.left());
    if (!c.ok()) return Truncated(c);
    // Sizes, each with its terminator, come last string first.
    out_.strings.resize(n);
    for (uint64_t k = 0; k < n; ++k) {
      if (sizes[k] == 0 || sizes[k] > data.size()) return ErrorAt(file_, c.offset(), "a string does not fit");
      out_.strings[n - 1 - k] = data.substr(data.size() - sizes[k], sizes[k] - 1);
      data.remove_suffix(sizes[k]);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<absl::string_view> String(Cursor& c, uint64_t index) {
    if (!c.ok()) return Truncated(c);
    if (index >= out_.strings.size()) return ErrorAt(file_, c.offset(), absl::StrCat("there is no string ", index));
    return out_.strings[index];
  }

  absl::StatusOr<absl::string_view> Dialect(Cursor& c) {
    const uint64_t d = c.Varint();
    if (!c.ok()) return Truncated(c);
    if (d >= out_.dialects.size()) return ErrorAt(file_, c.offset(), absl::StrCat("there is no dialect ", d));
    return out_.dialects[d];
  }

  absl::Status ReadDialects(Cursor c) {
    const uint64_t n = c.Count();
    for (uint64_t k = 0; k < n && c.ok(); ++k) {
      uint64_t name = c.Varint();
      const bool versioned = out_.version >= 1 && (name & 1);
      if (out_.version >= 1) name >>= 1;
      ASSIGN_OR_RETURN(absl::string_view text, String(c, name));
      out_.dialects.push_back(text);
      if (versioned) {
        if ((c.Byte() & 0x7f) != kDialectVersions) return ErrorAt(file_, c.offset(), "a dialect's version is missing");
        c.Bytes(c.Varint());
      }
    }
    if (out_.version >= 4) c.Varint();  // how many names follow
    while (c.ok() && !c.AtEnd()) {
      ASSIGN_OR_RETURN(absl::string_view dialect, Dialect(c));
      const uint64_t names = c.Count();
      for (uint64_t k = 0; k < names && c.ok(); ++k) {
        uint64_t name = c.Varint();
        if (out_.version >= 5) name >>= 1;  // whether the operation was registered
        ASSIGN_OR_RETURN(absl::string_view text, String(c, name));
        out_.op_names.push_back(absl::StrCat(dialect, ".", text));
      }
    }
    return c.ok() ? absl::OkStatus() : Truncated(c);
  }

  absl::Status ReadTables(Cursor offsets, Cursor data) {
    const uint64_t attributes = offsets.Count(), types = offsets.Count();
    for (auto [table, size] : {std::pair{&out_.attributes, attributes}, {&out_.types, types}}) {
      while (offsets.ok() && table->size() < size) {
        ASSIGN_OR_RETURN(absl::string_view dialect, Dialect(offsets));
        const uint64_t group = offsets.Count();
        if (group > size - table->size()) return ErrorAt(file_, offsets.offset(), "a table has too many entries");
        for (uint64_t k = 0; k < group && offsets.ok(); ++k) {
          const uint64_t v = offsets.Varint();
          const size_t at = data.offset();
          const absl::string_view bytes = data.Bytes(v >> 1);
          if (!data.ok()) return Truncated(data);
          table->push_back({dialect, (v & 1) != 0, Cursor(bytes, at)});
        }
      }
    }
    return offsets.ok() ? absl::OkStatus() : Truncated(offsets);
  }

  absl::Status ReadProperties(Cursor c) {
    const uint64_t n = c.Count();
    for (uint64_t k = 0; k < n && c.ok(); ++k) {
      const uint64_t size = c.Varint();
      const size_t at = c.offset();
      out_.properties.push_back(Cursor(c.Bytes(size), at));
    }
    return c.ok() ? absl::OkStatus() : Truncated(c);
  }

  std::string file_;
  Cursor in_;
  Container out_;
  std::array<std::optional<Cursor>, kSectionIds> sections_;
};

}  // namespace

absl::StatusOr<Container> ReadContainer(absl::string_view bytes, const std::string& file) {
  return Reader(bytes, file).Read();
}

}  // namespace kiln::bytecode
