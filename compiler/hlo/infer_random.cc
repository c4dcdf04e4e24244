#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

absl::StatusOr<Shape> Rng(const Instruction& i, Given given) {
  REQUIRE(given, "needs a shape");
  REQUIRE(i.operand_count() >= 2, "takes 2 operands, not ", i.operand_count());
  for (int64_t k = 0; k < 2; ++k) {  // what follows, old programs say of the shape
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsScalar() && SameTypeButPrecision(s.type(), given->type()), "operand ", k, " is ", s.ToString(false),
            ", the result ", given->ToString(false));
  }
  return *given;
}

absl::StatusOr<Shape> RngBitGenerator(const Instruction& i, Given given) {
  const Shape& state = i.operand(0)->shape();
  REQUIRE(given, "needs a shape");
  REQUIRE(!given->IsTuple() || (given->tuple().size() == 2 && given->tuple()[0].Compatible(state)), "shape is not (",
          state.ToString(false), ", bits)");
  return *given;
}

absl::StatusOr<Shape> RngGetAndUpdateState(const Instruction&, Given) { return Shape::Array(PrimitiveType::U64, {2}); }

}  // namespace kiln::infer
