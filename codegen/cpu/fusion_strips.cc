// Two products and the rows between them (attention): a unit is a strip, which the first product's code, that of the
// rows and the second product's take in turn.
//
// Each of them is the kernel that it would be by itself, for the rows of the strip alone. They find the strip's rows
// where an array of all of them would have these, so that what they compute from a row's number, or read of masks,
// stays as it is.
#include "codegen/cpu/contractions.h"
#include "codegen/cpu/fusion.h"
#include "codegen/cpu/strip_plan.h"

namespace kiln::cpu {
namespace {

class Strips {
 public:
  Strips(Body& body, StripPlan plan) : body_(body), ir_(body.ir), b_(body.ir.b), plan_(std::move(plan)) {}

  absl::StatusOr<int64_t> Emit() {
    const int64_t elements = plan_.strips.size * plan_.first.shape.n;
    const auto buffer = [&](PrimitiveType t) { return ir_.Alloca(ir_.MemType(t), elements); };
    llvm::Value* scores = buffer(plan_.first.shape.c);
    llvm::Value* made = plan_.one_buffer ? scores : buffer(plan_.second.shape.a);
    absl::Status status;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* unit) { status = Strip(unit, scores, made); });
    RETURN_IF_ERROR(status);
    return plan_.units;
  }

 private:
  absl::Status Strip(llvm::Value* unit, llvm::Value* scores, llvm::Value* made) {
    const DotShape& s = plan_.first.shape;
    llvm::Value *batch = b_.CreateUDiv(unit, ir_.I64(plan_.strips.count)),
                *first = ir_.Mul(b_.CreateURem(unit, ir_.I64(plan_.strips.count)), plan_.strips.size);
    llvm::Value *rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.I64(plan_.strips.size),
                                                 b_.CreateSub(ir_.I64(s.m), first)),
                *row = ir_.Add(ir_.Mul(batch, s.m), first);
    // Where an array of all rows would begin that has this one's in the buffer.
    const auto array = [&](llvm::Value* buffer, PrimitiveType t) {
      return b_.CreateGEP(ir_.MemType(t), buffer, b_.CreateNeg(ir_.Mul(row, s.n)));
    };
    arrays_[plan_.first_dot] = array(scores, s.c);
    arrays_[plan_.rows] = array(made, plan_.second.shape.a);
    arrays_[plan_.second_dot] = body_.results[0];

    llvm::Value* next = ir_.Add(unit, ir_.I64(1));
    Body first_product = Step(plan_.first_dot, unit, next);
    EmitDotAsProducts(first_product, plan_.first, {}, {});
    Body between = Step(plan_.rows, row, ir_.Add(row, rows));
    between.in_place = true;
    const bool masked = std::exchange(ir_.masked_stores, false);
    ASSIGN_OR_RETURN(const int64_t units, EmitFusion(between));
    ir_.masked_stores = masked;
    if (units != s.batch * s.m) return ErrorAt(plan_.rows, "is not made row by row", absl::StatusCode::kInternal);
    Body second_product = Step(plan_.second_dot, unit, next);
    EmitDotAsProducts(second_product, plan_.second, {}, {});
    return absl::OkStatus();
  }

  llvm::Value* ArrayOf(const Instruction* i) const {
    i = WithoutBitcasts(i);
    return i->Is(Opcode::Parameter) ? body_.operands[static_cast<size_t>(*i->attrs().parameter_number)] : arrays_.at(i);
  }

  // The kernel of `i`, for units from `begin` to `end`.
  Body Step(const Instruction* i, llvm::Value* begin, llvm::Value* end) const {
    Body step{ir_, i, {}, {arrays_.at(i)}, body_.scratch, begin, end};
    for (const Instruction* o : i->operands()) step.operands.push_back(ArrayOf(o));
    return step;
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const StripPlan plan_;
  absl::flat_hash_map<const Instruction*, llvm::Value*> arrays_;
};

}  // namespace

absl::StatusOr<int64_t> EmitStrips(Body& body, const Computation& f) {
  ASSIGN_OR_RETURN(StripPlan plan, PlanStrips(body.ir.level, f));
  return Strips(body, std::move(plan)).Emit();
}

}  // namespace kiln::cpu
