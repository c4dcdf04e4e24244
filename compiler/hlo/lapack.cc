#include "compiler/hlo/lapack.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace kiln {

std::optional<int64_t> CallAttribute(const Instruction* i, absl::string_view key) {
  if (!i->attrs().backend_config) return std::nullopt;
  const absl::string_view text = i->attrs().backend_config->text;
  for (size_t at = text.find(key); at != absl::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && (absl::ascii_isalnum(text[at - 1]) || text[at - 1] == '_')) continue;
    absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(at + key.size()));
    if (!absl::ConsumePrefix(&rest, "=")) continue;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    int64_t v;
    if (absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789-")), &v)) return v;
  }
  return std::nullopt;
}

namespace {

// "lapack_sgeqrf_ffi" is the routine geqrf of f32; the names of XLA's builder are for every type.
std::optional<absl::string_view> RoutineOf(absl::string_view target, PrimitiveType type) {
  if (target == "Qr" || target == "QrDecomposition") return "geqrf";
  if (target == "ProductOfElementaryHouseholderReflectors") return "orgqr";
  if (target == "Eigh") return target;
  if (!absl::ConsumePrefix(&target, "lapack_") || !absl::ConsumeSuffix(&target, "_ffi")) return std::nullopt;
  if (!absl::ConsumePrefix(&target, type == PrimitiveType::F64 ? "d" : "s")) return std::nullopt;
  return target;
}

// "Eigh" is told in numbers: lower, sorted, most sweeps, tolerance.
bool ReadsLowerTriangle(const Instruction* eigh) {
  if (!eigh->attrs().backend_config) return true;
  return !absl::StartsWith(absl::StripPrefix(eigh->attrs().backend_config->text, "\""), "0");
}

}  // namespace

std::optional<LapackCall> LapackOf(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target || i->operand_count() == 0) return std::nullopt;
  const absl::string_view target = i->attrs().custom_call_target->text;
  if (i->parent()->module()->external_lapack && absl::StartsWith(target, "lapack_")) return std::nullopt;
  const Shape& a = i->operand(0)->shape();
  if (!a.IsArray() || a.rank() < 2 || (a.type() != PrimitiveType::F32 && a.type() != PrimitiveType::F64))
    return std::nullopt;
  const std::optional<absl::string_view> name = RoutineOf(target, a.type());
  if (!name) return std::nullopt;
  LapackCall c;
  c.rows = a.dim(a.rank() - 2);
  c.cols = a.dim(a.rank() - 1);
  for (int64_t d = 0; d + 2 < a.rank(); ++d) c.batch *= a.dim(d);
  const int64_t least = std::min(c.rows, c.cols), mode = CallAttribute(i, "mode").value_or('N');
  const auto batched = [&](PrimitiveType type, Ints dims) {
    dims.insert(dims.begin(), a.dims().begin(), a.dims().end() - 2);
    return Shape::Array(type, dims);
  };
  const auto gives = [&](const std::vector<Shape>& shapes) {
    return shapes.size() == 1 ? i->shape().Compatible(shapes[0]) : i->shape().Compatible(Shape::Tuple(shapes));
  };
  const PrimitiveType type = a.type(), s32 = PrimitiveType::S32;
  const Shape matrix = batched(type, {c.rows, c.cols}), scalars = batched(type, {least}), info = batched(s32, {});
  if (*name == "getrf" && gives({matrix, batched(s32, {least}), info})) {
    c.routine = LapackRoutine::kGetrf;
  } else if (*name == "geqrf" && gives({matrix, scalars})) {
    c.routine = LapackRoutine::kGeqrf;
  } else if (*name == "orgqr" && gives({matrix}) && i->operand_count() == 2 && c.rows >= c.cols) {
    const Shape& tau = i->operand(1)->shape();
    if (!tau.IsArray() || tau.rank() == 0 || tau.dims().back() > c.cols) return std::nullopt;
    if (!tau.Compatible(batched(type, {tau.dims().back()}))) return std::nullopt;
    c.routine = LapackRoutine::kOrgqr;
  } else if (*name == "syevd" && c.rows == c.cols && gives({matrix, scalars, info})) {
    c.routine = LapackRoutine::kSyevd;
    c.vectors = mode == 'V';
    c.lower = CallAttribute(i, "uplo").value_or('L') == 'L';
  } else if (*name == "Eigh" && c.rows == c.cols && gives({matrix, scalars})) {
    c.routine = LapackRoutine::kSyevd;
    c.vectors = true;
    c.lower = ReadsLowerTriangle(i);
  } else if (*name == "gesdd" && i->shape().IsTuple() && i->shape().tuple().size() == 5) {
    const Shape &u = i->shape().tuple()[2], &vt = i->shape().tuple()[3];
    if (!u.IsArray() || u.rank() != a.rank() || !vt.IsArray() || vt.rank() != a.rank()) return std::nullopt;
    const int64_t left = u.dims().back(), right = vt.dim(vt.rank() - 2);
    if (left < least || left > c.rows || right < least || right > c.cols) return std::nullopt;
    if (!gives({matrix, scalars, batched(type, {c.rows, left}), batched(type, {right, c.cols}), info}))
      return std::nullopt;
    c.routine = LapackRoutine::kGesdd;
    c.vectors = mode != 'N';
  } else {
    return std::nullopt;
  }
  return c;
}

}  // namespace kiln
