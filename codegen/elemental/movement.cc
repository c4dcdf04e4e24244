// Operations that compute nothing: their element is one of an operand, at another index or chosen among several.
#include "codegen/elemental/movement.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/llvm/row_questions.h"

namespace kiln {
namespace {

absl::StatusOr<Val> Broadcast(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Index in;
  for (int64_t d : *i->attrs().dimensions) in.dims.push_back(index.dims[d]);
  return elements.Emit(i->operand(0), in);
}

absl::StatusOr<Val> Transpose(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Index in;
  in.dims.resize(index.dims.size());
  for (size_t d = 0; d < index.dims.size(); ++d) in.dims[(*i->attrs().dimensions)[d]] = index.dims[d];
  return elements.Emit(i->operand(0), in);
}

absl::StatusOr<Val> Reverse(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  Index in{index.dims};
  for (int64_t d : *i->attrs().dimensions)
    in.dims[d] = b.CreateSub(ir.I64(i->shape().dim(d) - 1), index.dims[d], "", true, true);
  return elements.Emit(i->operand(0), in);
}

absl::StatusOr<Val> Slice(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  Index in;
  for (size_t d = 0; d < index.dims.size(); ++d) {
    const SliceDim& s = (*i->attrs().slice)[d];
    llvm::Value* v = ir.Mul(index.dims[d], s.stride);
    in.dims.push_back(s.start ? ir.Add(v, ir.I64(s.start)) : v);
  }
  constexpr int64_t kNear = 2;
  if (const int64_t minor = MinorDim(i->shape());
      minor >= 0 && (*i->attrs().slice)[static_cast<size_t>(minor)].stride > kNear)
    ir.LoadsApart(i->shape().type());
  return elements.Emit(i->operand(0), in);
}

// The element at the same place in row-major order. Dimensions that make up the same number of elements on both sides
// are taken apart and put together among themselves: a dimension that both have keeps its place as it is, so that a
// loop along it still walks memory.
absl::StatusOr<Val> Reshape(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (from.dims() == to.dims()) return elements.Emit(i->operand(0), index);
  if (const std::optional<Index> place = elements.PlaceOf(index, from)) return elements.Emit(i->operand(0), *place);
  Index in;
  in.dims.assign(static_cast<size_t>(from.rank()), ir.I64(0));
  if (from.ElementCount() == 0) return elements.Emit(i->operand(0), in);
  const auto longer_than_one = [](const Shape& s) {
    Ints dims;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (s.dim(d) != 1) dims.push_back(d);
    return dims;
  };
  const Ints fp = longer_than_one(from), tp = longer_than_one(to);
  llvm::Value* linear = elements.Offset(Shape::Array(to.type(), to.dims()), index);
  in.linear = index.linear;
  for (size_t f = 0, t = 0; f < fp.size();) {
    size_t f_end = f + 1, t_end = t + 1;
    int64_t n = from.dim(fp[f]), m = to.dim(tp[t]);
    while (n != m)
      if (n < m)
        n *= from.dim(fp[f_end++]);
      else
        m *= to.dim(tp[t_end++]);
    const bool alike = f_end == f + 1 && t_end == t + 1, all = t_end - t == tp.size();
    llvm::Value* place = all && !alike ? linear : index.dims[tp[t]];
    for (size_t k = t + 1; k < t_end && !all; ++k) place = ir.Add(ir.Mul(place, to.dim(tp[k])), index.dims[tp[k]]);
    for (size_t k = f_end; k-- > f;) {
      const int64_t d = fp[k];
      in.dims[d] = k == f ? place : b.CreateURem(place, ir.I64(from.dim(d)));
      if (k > f) place = b.CreateUDiv(place, ir.I64(from.dim(d)));
    }
    if (!alike) in.linear = linear;
    f = f_end;
    t = t_end;
  }
  return elements.Emit(i->operand(0), in);
}

// The same place in memory: another index, where a layout is not row major.
absl::StatusOr<Val> Bitcast(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (from.type() != to.type())
    return ErrorAt(i, "a bitcast to another type is not supported in a fusion", absl::StatusCode::kUnimplemented);
  if (from.HasDefaultLayout() && to.HasDefaultLayout()) return Reshape(elements, i, index);
  llvm::Value* linear = elements.Offset(to, index);
  Index in;
  in.linear = from.HasDefaultLayout() ? linear : nullptr;
  in.dims.assign(from.rank(), ir.I64(0));
  const Ints minor_to_major = from.LayoutOrDefault().minor_to_major;
  for (int64_t d : minor_to_major) {
    in.dims[d] = d == minor_to_major.back() ? linear : ir.b.CreateURem(linear, ir.I64(from.dim(d)));
    linear = ir.b.CreateUDiv(linear, ir.I64(from.dim(d)));
  }
  return elements.Emit(i->operand(0), in);
}

// The element of `i` at `index` where `cond` holds, else `other`.
absl::StatusOr<Val> EmitIf(ElementEmitter& elements, llvm::Value* cond, const Instruction* i, const Index& index,
                           const Val& other) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  llvm::BasicBlock *before = b.GetInsertBlock(), *then = nullptr;
  absl::StatusOr<Val> v = Val{};
  ir.If(cond, [&] {
    v = elements.Emit(i, index);
    then = b.GetInsertBlock();
  });
  RETURN_IF_ERROR(v.status());
  const auto either = [&](llvm::Value* x, llvm::Value* y) {
    llvm::PHINode* r = b.CreatePHI(x->getType(), 2);
    r->addIncoming(x, then);
    r->addIncoming(y, before);
    return r;
  };
  Val r{either(v->re, other.re)};
  if (v->im) r.im = either(v->im, other.im);
  return r;
}

// The operand's element, from a row's place and the padded array's index within the row: the padding is taken off last.
// Added to a row's start, an index that is known to lie inside becomes an or, which is wrong where LLVM's vectoriser
// begins before the row.
llvm::Value* LinearBehindPadding(ElementEmitter& elements, const Instruction* i, const Index& index, const Index& in,
                                 int64_t along) {
  Ir& ir = elements.ir();
  const Shape& from = i->operand(0)->shape();
  const Ints strides = from.Strides();
  llvm::Value* sum = ir.I64(0);
  for (int64_t d = 0; d < from.rank(); ++d) sum = ir.Add(sum, ir.Mul((d == along ? index : in).dims[d], strides[d]));
  return ir.b.CreateSub(sum, ir.I64((*i->attrs().padding)[static_cast<size_t>(along)].low * strides[along]), "", false,
                        true);
}

// Which of `n` elements that lie `step` apart is at `v`, and whether one is. Places before the first are far behind the
// last as unsigned numbers, whose quotients by a constant are cheap, and those of 32 bits most of all in vectors.
std::pair<llvm::Value*, llvm::Value*> PlaceBetween(Ir& ir, llvm::Value* v, int64_t step, int64_t n) {
  llvm::IRBuilder<>& b = ir.b;
  constexpr int64_t kNarrow = int64_t{1} << 30;
  llvm::Type* type = n * step < kNarrow ? b.getInt32Ty() : b.getInt64Ty();
  const auto number = [&](int64_t k) { return llvm::ConstantInt::get(type, static_cast<uint64_t>(k)); };
  llvm::Value* place = b.CreateTrunc(v, type);
  llvm::Value* q = b.CreateUDiv(place, number(step));
  llvm::Value* ok = b.CreateAnd(b.CreateICmpEQ(b.CreateMul(q, number(step)), place), b.CreateICmpULT(q, number(n)));
  return {b.CreateZExt(q, b.getInt64Ty()), ok};
}

absl::StatusOr<Val> Pad(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  const Shape& from = i->operand(0)->shape();
  ASSIGN_OR_RETURN(Val fill, elements.Emit(i->operand(1), Index{}));
  fill = elements.ir().Convert(fill, i->operand(1)->shape().type(), i->operand(0)->shape().type());
  if (from.ElementCount() == 0) return fill;
  const attr::Padding& padding = *i->attrs().padding;
  // A vector is loaded under a mask where the level has masks and elements lie next to each other. Elsewhere one is
  // read at a harmless position, where there is no element, and not used. Rows are harmless ones in any case: a machine
  // takes a hundred times as long for a masked vector outside the process's memory.
  const int64_t along = MinorDim(i->shape());
  const bool masked = ir.level.vector_bytes == 64 && along >= 0 && padding[static_cast<size_t>(along)].interior == 0;
  if (masked) b.GetInsertBlock()->getParent()->addFnAttr(kAsksOfRows);
  llvm::Value* inside = b.getTrue();
  Index in;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const PadDim& p = padding[static_cast<size_t>(d)];
    llvm::Value* v = index.dims[d];
    if (p == PadDim{}) {
      in.dims.push_back(v);
      continue;
    }
    v = b.CreateSub(v, ir.I64(p.low), "", false, true);
    llvm::Value* ok;
    if (p.interior) {
      std::tie(v, ok) = PlaceBetween(ir, v, p.interior + 1, from.dim(d));
    } else {
      ok = b.CreateICmpULT(v, ir.I64(from.dim(d)));
    }
    inside = b.CreateAnd(inside, ok);
    in.dims.push_back(masked && d == along ? v : b.CreateSelect(ok, v, ir.I64(0)));
  }
  if (masked) {
    in.linear = LinearBehindPadding(elements, i, index, in, along);
    return EmitIf(elements, inside, i->operand(0), in, fill);
  }
  ASSIGN_OR_RETURN(Val v, elements.Emit(i->operand(0), in));
  Val r{b.CreateSelect(inside, v.re, fill.re)};
  if (v.im) r.im = b.CreateSelect(inside, v.im, fill.im);
  return r;
}

absl::StatusOr<Val> Concatenate(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  const int64_t d = (*i->attrs().dimensions)[0];
  Val r;
  int64_t base = 0;
  for (const Instruction* o : i->operands()) {
    const int64_t n = o->shape().dim(d);
    if (n == 0) continue;
    Index in{index.dims};
    llvm::Value* v = b.CreateSub(index.dims[d], ir.I64(base), "", false, true);
    llvm::Value* ok = b.CreateICmpULT(v, ir.I64(n));
    in.dims[d] = b.CreateSelect(ok, v, ir.I64(0));
    ASSIGN_OR_RETURN(Val e, elements.Emit(o, in));
    r = r.re ? Val{b.CreateSelect(ok, e.re, r.re), e.im ? b.CreateSelect(ok, e.im, r.im) : nullptr} : e;
    base += n;
  }
  return r;
}

absl::StatusOr<Val> BitcastConvert(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  llvm::IRBuilder<>& b = ir.b;
  const PrimitiveType t = i->shape().type();
  const PrimitiveType from = i->operand(0)->shape().type();
  const int fb = InfoOf(from).bits, tb = InfoOf(t).bits;
  if (from == t) return elements.Emit(i->operand(0), index);
  if (fb == tb && !IsComplex(from) && !IsComplex(t)) {
    ASSIGN_OR_RETURN(Val v, elements.Emit(i->operand(0), index));
    return elements.Reinterpret(v, from, t);
  }
  if (IsComplex(from) || IsComplex(t) || fb < 8 || tb < 8) {
    return ErrorAt(i, absl::StrCat("reinterpreting ", TextOf(from), " as ", TextOf(t), " is not supported"),
                   absl::StatusCode::kUnimplemented);
  }
  // Through memory types: bits as they are stored.
  auto bits_of = [&](const Val& v) -> llvm::Value* {
    llvm::Value* slot = ir.Alloca(ir.MemType(from), 1, 8);
    ir.Store(from, v, slot, ir.I64(0));
    return b.CreateLoad(b.getIntNTy(static_cast<unsigned>(fb)), slot);
  };
  auto value_of = [&](llvm::Value* bits) -> Val {
    llvm::Value* slot = ir.Alloca(bits->getType(), 1, 8);
    b.CreateStore(bits, slot);
    return ir.Load(t, slot, ir.I64(0));
  };
  if (fb > tb) {  // one wide element gives several: the last index picks the piece
    Index in{std::vector<llvm::Value*>(index.dims.begin(), index.dims.end() - 1)};
    ASSIGN_OR_RETURN(Val v, elements.Emit(i->operand(0), in));
    llvm::Value* bits = bits_of(v);
    llvm::Value* shift = b.CreateMul(b.CreateIntCast(index.dims.back(), bits->getType(), false),
                                     llvm::ConstantInt::get(bits->getType(), static_cast<uint64_t>(tb)));
    return value_of(b.CreateTrunc(b.CreateLShr(bits, shift), b.getIntNTy(static_cast<unsigned>(tb))));
  }
  llvm::Type* wide = b.getIntNTy(static_cast<unsigned>(tb));
  llvm::Value* acc = llvm::ConstantInt::get(wide, 0);
  for (int k = 0; k < tb / fb; ++k) {
    Index in{index.dims};
    in.dims.push_back(ir.I64(k));
    ASSIGN_OR_RETURN(Val v, elements.Emit(i->operand(0), in));
    acc = b.CreateOr(acc, b.CreateShl(b.CreateZExt(bits_of(v), wide), static_cast<uint64_t>(k * fb)));
  }
  return value_of(acc);
}

absl::StatusOr<Val> DynamicSlice(ElementEmitter& elements, const Instruction* i, const Index& index) {
  Ir& ir = elements.ir();
  const Shape& from = i->operand(0)->shape();
  Index in;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dim(d) == i->shape().dim(d)) {
      in.dims.push_back(index.dims[d]);
      continue;
    }
    ASSIGN_OR_RETURN(llvm::Value * s,
                     elements.ClampedStart(i->operand(d + 1), Index{}, from.dim(d), i->shape().dim(d)));
    in.dims.push_back(ir.Add(index.dims[d], s));
  }
  return elements.Emit(i->operand(0), in);
}

using Emitter = absl::StatusOr<Val> (*)(ElementEmitter&, const Instruction*, const Index&);

Emitter EmitterOf(Opcode op) {
  static const auto* table = new absl::flat_hash_map<Opcode, Emitter>{{Opcode::Broadcast, Broadcast},
                                                                      {Opcode::Transpose, Transpose},
                                                                      {Opcode::Reverse, Reverse},
                                                                      {Opcode::Slice, Slice},
                                                                      {Opcode::Reshape, Reshape},
                                                                      {Opcode::Bitcast, Bitcast},
                                                                      {Opcode::Pad, Pad},
                                                                      {Opcode::Concatenate, Concatenate},
                                                                      {Opcode::BitcastConvert, BitcastConvert},
                                                                      {Opcode::DynamicSlice, DynamicSlice}};
  const auto it = table->find(op);
  return it == table->end() ? nullptr : it->second;
}

}  // namespace

bool IsMovement(Opcode op) { return EmitterOf(op) != nullptr; }

absl::StatusOr<Val> EmitMovement(ElementEmitter& elements, const Instruction* i, const Index& index) {
  return EmitterOf(i->opcode())(elements, i, index);
}

}  // namespace kiln
