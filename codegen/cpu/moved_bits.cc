#include "codegen/cpu/moved_bits.h"

#include <algorithm>
#include <cstring>

namespace kiln::cpu {
namespace {

// The type that elements of `t` move as; `t` itself where that gains nothing.
PrimitiveType MovedAs(PrimitiveType t) {
  const bool number = IsFloat(t) || t == PrimitiveType::C64 || t == PrimitiveType::Pred;
  if (!number || InfoOf(t).bits == 32 || (IsFloat(t) && InfoOf(t).bits == 64)) return t;
  switch (ByteWidth(t)) {
    case 1:
      return InfoOf(t).bits == 8 || t == PrimitiveType::Pred ? PrimitiveType::U8 : t;
    case 2:
      return PrimitiveType::U16;
    case 8:
      return PrimitiveType::U64;
    default:
      return t;
  }
}

bool Changes(const Shape& s) { return s.IsArray() && MovedAs(s.type()) != s.type(); }

Shape Moved(const Shape& s) {
  if (s.IsTuple()) {
    std::vector<Shape> parts;
    for (const Shape& p : s.tuple()) parts.push_back(Moved(p));
    return Shape::Tuple(parts);
  }
  if (!Changes(s)) return s;
  Shape out = Shape::Array(MovedAs(s.type()), s.dims());
  out.set_layout(s.layout());
  return out;
}

// Whether `i` takes or gives such elements otherwise than by moving them.
bool Computes(const Instruction* i) {
  const auto& operands = i->operands();
  const bool takes = std::any_of(operands.begin(), operands.end(), [](auto* o) { return Changes(o->shape()); });
  if (i->Is(Opcode::Tuple)) return false;
  if (!takes && !Changes(i->shape())) return false;
  switch (i->opcode()) {
    case Opcode::Parameter:
      return false;
    case Opcode::Constant:
      return i->shape().ElementCount() != 1;
    case Opcode::Broadcast:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Reverse:
    case Opcode::Transpose:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Gather:
      return i->operand(0)->shape().type() != i->shape().type();
    case Opcode::Pad:
    case Opcode::DynamicUpdateSlice:
      return i->operand(0)->shape().type() != i->shape().type() || i->operand(1)->shape().type() != i->shape().type();
    case Opcode::Concatenate:
      return std::any_of(operands.begin(), operands.end(),
                         [&](auto* o) { return o->shape().type() != i->shape().type(); });
    default:
      return true;
  }
}

Literal BitsOf(const Literal& value) {
  Literal bits(Moved(value.shape()));
  std::memcpy(bits.mutable_data(), value.data(), static_cast<size_t>(value.byte_size()));
  return bits;
}

}  // namespace

std::unique_ptr<Module> AsMovedBits(const Computation& f) {
  bool any = false;
  for (const auto& i : f.instructions()) {
    if (Computes(i.get())) return nullptr;
    any = any || Changes(i->shape());
  }
  if (!any) return nullptr;
  auto m = std::make_unique<Module>("moved");
  Computation* c = m->AddComputation("fused");
  absl::flat_hash_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : f.PostOrder()) {
    std::vector<Instruction*> operands;
    for (const Instruction* o : i->operands()) operands.push_back(copies.at(o));
    copies[i] = i->Is(Opcode::Constant) && Changes(i->shape()) ? c->AddConstant(BitsOf(i->literal()))
                                                               : c->AddClone(i, Moved(i->shape()), std::move(operands));
  }
  c->set_root(copies.at(f.root()));
  m->set_entry(c);
  return m;
}

}  // namespace kiln::cpu
