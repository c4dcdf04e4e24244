#include "compiler/hlo/lapack.h"

#include "absl/strings/ascii.h"
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

std::optional<LapackCall> LapackOf(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target || i->operand_count() == 0) return std::nullopt;
  if (i->parent()->module()->external_lapack) return std::nullopt;
  absl::string_view t = i->attrs().custom_call_target->text;
  if (!absl::ConsumePrefix(&t, "lapack_") || !absl::ConsumeSuffix(&t, "_ffi") || t.empty()) return std::nullopt;
  const PrimitiveType type = t[0] == 's' ? PrimitiveType::F32 : t[0] == 'd' ? PrimitiveType::F64 : PrimitiveType::Pred;
  const Shape& a = i->operand(0)->shape();
  if (a.type() != type || a.rank() < 2) return std::nullopt;
  t.remove_prefix(1);
  LapackCall c;
  c.rows = a.dim(a.rank() - 2);
  c.cols = a.dim(a.rank() - 1);
  for (int64_t d = 0; d + 2 < a.rank(); ++d) c.batch *= a.dim(d);
  const size_t results = i->shape().IsTuple() ? i->shape().tuple().size() : 1;
  const int64_t mode = CallAttribute(i, "mode").value_or('N');
  if (t == "getrf" && results == 3) {
    c.routine = LapackRoutine::kGetrf;
  } else if (t == "geqrf" && results == 2) {
    c.routine = LapackRoutine::kGeqrf;
  } else if (t == "orgqr" && results == 1 && i->operand_count() == 2 && c.rows >= c.cols) {
    c.routine = LapackRoutine::kOrgqr;
  } else if (t == "syevd" && results == 3 && c.rows == c.cols) {
    c.routine = LapackRoutine::kSyevd;
    c.vectors = mode == 'V';
    c.lower = CallAttribute(i, "uplo").value_or('L') == 'L';
  } else if (t == "gesdd" && results == 5) {
    c.routine = LapackRoutine::kGesdd;
    c.vectors = mode != 'N';
  } else {
    return std::nullopt;
  }
  return c;
}

}  // namespace kiln
