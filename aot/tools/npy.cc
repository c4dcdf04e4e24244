#include "aot/tools/npy.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

// Whether NumPy writes arrays of ml_dtypes' floats so: as bytes without a type. The 8-bit float of IEEE 754's form
// is "<f1".
bool NamesBytesOf(absl::string_view descr, PrimitiveType t) {
  if (descr.empty() || (descr[0] != '<' && descr[0] != '|')) return false;
  const absl::string_view kind = descr.substr(1);
  if (t == PrimitiveType::BF16) return kind == "V2";
  return IsFloat(t) && BitWidth(t) == 8 && (kind == "V1" || (kind == "f1" && t == PrimitiveType::F8E5M2));
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, const std::string& path) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY")
    return InvalidArgument(path, ":1:1: error: not an .npy file");
  auto byte = [&](size_t k) { return static_cast<size_t>(static_cast<unsigned char>(bytes[k])); };
  const bool v1 = bytes[6] == 1;
  const size_t head = v1 ? 10 : 12;
  size_t len = byte(8) | byte(9) << 8;
  if (!v1 && bytes.size() >= 12) len |= byte(10) << 16 | byte(11) << 24;
  if (head + len > bytes.size()) return InvalidArgument(path, ":1:1: error: the header is cut off");
  const std::string header(bytes.substr(head, len));
  auto field = [&](const char* key) -> std::string {
    const size_t at = header.find(key);
    const size_t colon = at == std::string::npos ? at : header.find(':', at);
    return colon == std::string::npos ? "" : header.substr(colon + 1);
  };
  NpyArray out;
  out.descr = field("'descr'");
  out.descr = out.descr.substr(std::min(out.descr.size(), out.descr.find('\'')));
  if (!out.descr.empty()) out.descr.erase(0, 1);
  out.descr = out.descr.substr(0, out.descr.find('\''));
  if (absl::StrContains(field("'fortran_order'").substr(0, 6), "True"))
    return InvalidArgument(path, ":1:1: error: arrays must be in C order");
  std::string dims_text = field("'shape'");
  const size_t open = dims_text.find('('), close = dims_text.find(')');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return InvalidArgument(path, ":1:1: error: the header states no shape");
  for (absl::string_view d :
       absl::StrSplit(dims_text.substr(open + 1, close - open - 1), ',', absl::SkipWhitespace())) {
    int64_t extent;
    if (!absl::SimpleAtoi(d, &extent) || extent < 0)
      return InvalidArgument(path, ":1:1: error: '", d, "' is no extent");
    out.dims.push_back(extent);
  }
  out.data = bytes.substr(head + len);
  return out;
}

absl::StatusOr<Literal> ReadNpy(const std::string& path, const Shape& shape) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(NpyArray array, ParseNpy(bytes, path));
  return NpyLiteral(array, path, shape);
}

absl::StatusOr<Literal> NpyLiteral(const NpyArray& array, const std::string& path, const Shape& shape) {
  const Ints& dims = array.dims;
  // Writers store a scalar as an array of one element.
  if (dims != shape.dims() && !(shape.rank() == 0 && dims == Ints{1}))
    return InvalidArgument(path, ":1:1: error: shape [", absl::StrJoin(dims, ","), "], the argument is ",
                           shape.ToString(false));
  const char* data = array.data.data();
  const size_t size = array.data.size();
  std::string descr = array.descr;
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
  const std::string want = Descriptor(t);
  const bool in_order = !descr.empty() && (descr[0] != '>' || ByteWidth(t) == 1);
  if ((in_order && descr.substr(1) == want.substr(1)) || NamesBytesOf(descr, t)) descr = want;
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
