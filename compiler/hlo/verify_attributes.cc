// Which attributes an opcode has, and what they may be, as data.
#include <bitset>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {
namespace {

// One enumerator for each row of attributes.def.
enum class Attr : uint8_t {
#define ATTR(field, kind, text) field,
#include "compiler/hlo/attributes.def"
};

constexpr int kAttrCount = 0
#define ATTR(field, kind, text) +1
#include "compiler/hlo/attributes.def"
    ;

using AttrSet = std::bitset<kAttrCount>;

struct OpAttributes {
  AttrSet required;
  AttrSet allowed;  // the required and the general ones included
};

AttrSet SetOf(std::initializer_list<Attr> list) {
  AttrSet s;
  for (Attr a : list) s.set(static_cast<size_t>(a));
  return s;
}

std::vector<OpAttributes> MakeTable() {
  using enum Attr;
  std::vector<OpAttributes> table(static_cast<size_t>(OpcodeCount()));
#define REQUIRED(...) SetOf({__VA_ARGS__})
#define ALLOWED(...) SetOf({__VA_ARGS__})
#define GENERAL(...) \
  for (OpAttributes & row : table) row.allowed = SetOf({__VA_ARGS__});
#define ATTRS(op, needed, more)                               \
  table[static_cast<size_t>(Opcode::op)].required = (needed); \
  table[static_cast<size_t>(Opcode::op)].allowed |= (needed) | (more);
#include "compiler/hlo/op_attributes.def"
#undef REQUIRED
#undef ALLOWED
  return table;
}

constexpr absl::string_view kSpellings[] = {
#define ATTR(field, kind, text) text[0] ? text : #field,
#include "compiler/hlo/attributes.def"
};

absl::string_view TextOf(Attr a) { return kSpellings[static_cast<size_t>(a)]; }

AttrSet PresentIn(const Attributes& a) {
  AttrSet s;
#define ATTR(field, kind, text) s[static_cast<size_t>(Attr::field)] = a.field.has_value();
#include "compiler/hlo/attributes.def"
  return s;
}

absl::Status CheckWord(const Instruction& i, absl::string_view what, const std::string& value,
                       absl::string_view words) {
  for (absl::string_view w : absl::StrSplit(words, ' '))
    if (value == w) return absl::OkStatus();
  return ErrorAt(&i, absl::StrCat(what, " '", value, "' is none of ", words));
}

}  // namespace

absl::Status CheckAttributes(const Instruction& i) {
  const AttrSet present = PresentIn(i.attrs());
  static const auto* table = new std::vector<OpAttributes>(MakeTable());
  const OpAttributes& rules = (*table)[static_cast<size_t>(i.opcode())];
  if (const AttrSet wrong = present & ~rules.allowed; wrong.any())
    return ErrorAt(&i, absl::StrCat("has no attribute ", TextOf(static_cast<Attr>(wrong._Find_first()))));
  if (const AttrSet missing = rules.required & ~present; missing.any())
    return ErrorAt(&i, absl::StrCat("attribute ", TextOf(static_cast<Attr>(missing._Find_first())), " is missing"));
  const Attributes& a = i.attrs();
#define AT_LEAST(field, low)       \
  if (a.field && *a.field < (low)) \
    return ErrorAt(&i, absl::StrCat(TextOf(Attr::field), " is ", int64_t{*a.field}, ", less than ", low));
  // Values that depend on shapes (dimensions, window, dim_labels, ...) are the shape rules'.
  AT_LEAST(parameter_number, 0)
  AT_LEAST(tuple_index, 0)
  AT_LEAST(iota_dimension, 0)
  AT_LEAST(feature_group_count, 1)
  AT_LEAST(batch_group_count, 1)
  AT_LEAST(index_vector_dim, 0)
  AT_LEAST(feature_index, 0)
  AT_LEAST(exponent_bits, 1)
  AT_LEAST(mantissa_bits, 0)
  AT_LEAST(k, 0)
  AT_LEAST(num_carries, 0)
  AT_LEAST(scan_dimension, 0)
#undef AT_LEAST
  if (i.Is(Opcode::RngBitGenerator))
    return CheckWord(i, "algorithm", a.algorithm->text, "rng_default rng_three_fry rng_philox");
  return absl::OkStatus();
}

}  // namespace kiln::verify
