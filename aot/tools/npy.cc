#include "aot/tools/npy.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

std::string Descriptor(PrimitiveType t) {
  switch (t) {
    case PrimitiveType::Pred:
      return "|b1";
    case PrimitiveType::F16:
      return "<f2";
    case PrimitiveType::F32:
      return "<f4";
    case PrimitiveType::F64:
      return "<f8";
    case PrimitiveType::C64:
      return "<c8";
    case PrimitiveType::C128:
      return "<c16";
    default:
      break;
  }
  const int64_t w = ByteWidth(t);
  return absl::StrCat(w == 1 ? "|" : "<", IsSigned(t) ? "i" : "u", w);
}

}  // namespace

absl::StatusOr<Literal> ReadNpy(const std::string& path, const Shape& shape) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0)
    return InvalidArgument(path, ":1:1: error: not an .npy file");
  const bool v1 = bytes[6] == 1;
  const size_t head = v1 ? 10 : 12;
  size_t len = static_cast<unsigned char>(bytes[8]) | static_cast<unsigned char>(bytes[9]) << 8;
  if (!v1 && bytes.size() >= 12)
    len |= static_cast<size_t>(static_cast<unsigned char>(bytes[10])) << 16 |
           static_cast<size_t>(static_cast<unsigned char>(bytes[11])) << 24;
  if (head + len > bytes.size()) return InvalidArgument(path, ":1:1: error: the header is cut off");
  const std::string header = bytes.substr(head, len);
  auto field = [&](const char* key) -> std::string {
    const size_t at = header.find(key);
    if (at == std::string::npos) return "";
    return header.substr(header.find(':', at) + 1);
  };
  std::string descr = field("'descr'");
  descr = descr.substr(descr.find('\'') + 1);
  descr = descr.substr(0, descr.find('\''));
  if (absl::StrContains(field("'fortran_order'").substr(0, 6), "True"))
    return InvalidArgument(path, ":1:1: error: arrays must be in C order");
  std::string dims_text = field("'shape'");
  dims_text = dims_text.substr(dims_text.find('(') + 1);
  dims_text = dims_text.substr(0, dims_text.find(')'));
  Ints dims;
  for (size_t p = 0; p < dims_text.size();) {
    size_t e = dims_text.find(',', p);
    if (e == std::string::npos) e = dims_text.size();
    int64_t d;
    if (absl::SimpleAtoi(dims_text.substr(p, e - p), &d)) dims.push_back(d);
    p = e + 1;
  }
  // Writers store a scalar as an array of one element.
  if (dims != shape.dims() && !(shape.rank() == 0 && dims == Ints{1}))
    return InvalidArgument(path, ":1:1: error: shape [", absl::StrJoin(dims, ","), "], the argument is ",
                           shape.ToString(false));
  const char* data = bytes.data() + head + len;
  const size_t size = bytes.size() - head - len;
  Literal l(shape);
  const PrimitiveType t = shape.type();
  if (descr == "<f4" && IsFloat(t) && t != PrimitiveType::F32) {
    if (size < static_cast<size_t>(4 * l.size())) return InvalidArgument(path, ":1:1: error: the data is cut off");
    for (int64_t k = 0; k < l.size(); ++k) {
      float f;
      std::memcpy(&f, data + 4 * k, 4);
      Element e;
      e.re = f;
      l.Set(k, e);
    }
    return l;
  }
  std::string want = Descriptor(t);
  if (!descr.empty() && descr[0] != want[0] && descr.substr(1) == want.substr(1)) descr = want;
  if (descr != want)
    return InvalidArgument(path, ":1:1: error: element type ", descr, ", the argument is ", TextOf(t), " (", want, ")");
  if (size < static_cast<size_t>(l.byte_size())) return InvalidArgument(path, ":1:1: error: the data is cut off");
  if (l.byte_size()) std::memcpy(l.mutable_data(), data, l.byte_size());
  return l;
}

absl::Status WriteNpy(const std::string& path, const Literal& v) {
  std::string dims = absl::StrJoin(v.shape().dims(), ", ");
  if (v.shape().rank() == 1) dims += ",";
  std::string header =
      absl::StrCat("{'descr': '", Descriptor(v.type()), "', 'fortran_order': False, 'shape': (", dims, "), }");
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  if (v.byte_size()) out.append(reinterpret_cast<const char*>(v.data()), v.byte_size());
  return WriteFile(path, out);
}

}  // namespace kiln
