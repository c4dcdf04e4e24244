#include "codegen/elemental/element.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "codegen/elemental/convolution.h"
#include "codegen/elemental/movement.h"
#include "codegen/elemental/reduced.h"
#include "codegen/llvm/debug_info.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln {

llvm::Value* ElementEmitter::Offset(const Shape& shape, const Index& index) {
  if (index.linear && shape.HasDefaultLayout()) return index.linear;
  const Ints strides = shape.Strides();
  llvm::Value* off = nullptr;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) == 1) continue;
    llvm::Value* term = ir_.Mul(index.dims[d], strides[d]);
    off = off ? ir_.Add(off, term) : term;
  }
  return off ? off : ir_.I64(0);
}

absl::StatusOr<Val> ElementEmitter::Emit(const Instruction* i, const Index& index) {
  if (const auto it = preset_.find(i); it != preset_.end()) return it->second;
  Key key{i, ir_.b.GetInsertBlock(), index.dims};
  if (auto it = cache_.find(key); it != cache_.end()) return it->second;
  const DebugInfo::Line line(ir_, i);
  ASSIGN_OR_RETURN(Val v, EmitUncached(i, index));
  key.block = ir_.b.GetInsertBlock();
  cache_[key] = v;
  return v;
}

absl::StatusOr<llvm::Value*> ElementEmitter::ClampedStart(const Instruction* start, const Index& at, int64_t extent,
                                                          int64_t window) {
  ASSIGN_OR_RETURN(Val v, Emit(start, at));
  const bool s = IsSigned(start->shape().type());
  llvm::Value* w = ir_.b.CreateIntCast(v.re, ir_.b.getInt64Ty(), s);
  llvm::Value* hi = ir_.I64(extent - window);
  if (!s) return ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, w, hi);
  w = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, w, ir_.I64(0));
  return ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, w, hi);
}

absl::StatusOr<std::vector<Val>> ElementEmitter::Apply(const Computation& f, const std::vector<Val>& args) {
  // What a computation gives may be its next argument: rounded in every step, it does not depend on where it waits.
  const absl::Cleanup restore = [this, keeps = ir_.keeps_excess] { ir_.keeps_excess = keeps; };
  ir_.keeps_excess = false;
  absl::flat_hash_map<const Instruction*, Val> value;
  std::vector<Val> out;
  for (const Instruction* i : f.PostOrder()) {
    const auto known = preset_.find(i);
    if (known != preset_.end() && known->second.re) {
      value[i] = known->second;
    } else if (i->Is(Opcode::Parameter)) {
      value[i] = args[*i->attrs().parameter_number];
    } else if (i->Is(Opcode::Constant)) {
      value[i] = ir_.Constant(i->shape().type(), i->literal().Get(0));
    } else if (i->Is(Opcode::Tuple)) {
      if (i != f.root())
        return ErrorAt(i, "a tuple inside a scalar computation is not supported", absl::StatusCode::kUnimplemented);
      for (const Instruction* o : i->operands()) out.push_back(value.at(o));
      return out;
    } else if (i->IsElementwise()) {
      std::vector<Val> x;
      for (const Instruction* o : i->operands()) x.push_back(value.at(o));
      ASSIGN_OR_RETURN(value[i], EmitElementwise(ir_, i, x));
    } else if (i->Is(Opcode::BitcastConvert) &&
               InfoOf(i->shape().type()).bits == InfoOf(i->operand(0)->shape().type()).bits) {
      value[i] = Reinterpret(value.at(i->operand(0)), i->operand(0)->shape().type(), i->shape().type());
    } else if ((i->Is(Opcode::Reshape) || i->Is(Opcode::Broadcast) || i->Is(Opcode::Bitcast) ||
                i->Is(Opcode::Transpose)) &&
               i->shape().ElementCount() == 1) {
      value[i] = value.at(i->operand(0));  // reshapes and broadcasts of one element
    } else {
      return ErrorAt(i, "is not supported inside a computation on scalars", absl::StatusCode::kUnimplemented);
    }
  }
  return std::vector<Val>{value.at(f.root())};
}

// Through memory: the bits as they are stored.
Val ElementEmitter::Reinterpret(const Val& v, PrimitiveType from, PrimitiveType to) {
  if (from == to) return v;
  llvm::Value* slot = ir_.Alloca(ir_.MemType(from), 1, 8);
  ir_.Store(from, v, slot, ir_.I64(0));
  llvm::Type* bits = ir_.b.getIntNTy(static_cast<unsigned>(8 * ByteWidth(from)));
  llvm::Value* stored = ir_.b.CreateLoad(bits, slot);
  llvm::Value* other = ir_.Alloca(bits, 1, 8);
  ir_.b.CreateStore(stored, other);
  return ir_.Load(to, other, ir_.I64(0));
}

absl::StatusOr<Val> ElementEmitter::EmitUncached(const Instruction* i, const Index& index) {
  const Attributes& a = i->attrs();
  const PrimitiveType t = i->shape().type();
  if (const auto it = copies_.find(i); it != copies_.end()) {
    Index at = index;
    for (size_t d = 0; d < it->second.offset.size(); ++d)
      if (it->second.offset[d]) at.dims[d] = ir_.Add(at.dims[d], ir_.I64(it->second.offset[d]));
    return ir_.Load(t, it->second.address, Offset(it->second.shape, at));
  }
  if (i->IsElementwise()) {
    std::vector<Val> x;
    for (const Instruction* o : i->operands()) {
      ASSIGN_OR_RETURN(Val v, Emit(o, o->shape().rank() == 0 ? Index{} : index));
      x.push_back(v);
    }
    return EmitElementwise(ir_, i, x);
  }
  if (IsMovement(i->opcode())) {
    ASSIGN_OR_RETURN(const Val v, EmitMovement(*this, i, index));
    const PrimitiveType from = i->operand(0)->shape().type();
    return from == t || i->Is(Opcode::BitcastConvert) ? v : ir_.Convert(v, from, t);
  }
  switch (i->opcode()) {
    case Opcode::Parameter:
      return ir_.Load(t, params_[*a.parameter_number], Offset(i->shape(), index));
    case Opcode::Constant:
      if (i->shape().ElementCount() != 1)
        return ErrorAt(i, "array constants must be parameters of a fusion", absl::StatusCode::kInternal);
      return ir_.Constant(t, i->literal().Get(0));
    case Opcode::Iota: {
      llvm::Value* v = i->shape().rank() ? index.dims[a.iota_dimension.value_or(0)] : ir_.I64(0);
      return ir_.Convert(Val{v}, PrimitiveType::S64, t);
    }
    case Opcode::Gather:
      return EmitGather(i, index);
    case Opcode::ReduceWindow: {
      ASSIGN_OR_RETURN(std::vector<Val> v, EmitWindow(i, index));
      return v[0];
    }
    case Opcode::Reduce: {
      ASSIGN_OR_RETURN(std::vector<Val> v, EmitReduced(*this, i, index));
      return v[0];
    }
    case Opcode::Convolution:
      return EmitConvolutionAt(ir_, i, index.dims, [&](int64_t k, const Index& at) { return Emit(i->operand(k), at); });
    default:
      return ErrorAt(i, "cannot be computed element by element", absl::StatusCode::kUnimplemented);
  }
}

absl::StatusOr<Val> ElementEmitter::EmitGather(const Instruction* i, const Index& index) {
  const Attributes& a = i->attrs();
  const Shape &s = i->operand(0)->shape(), &idx = i->operand(1)->shape();
  const Ints ob = a.operand_batching_dims.value_or(Ints()), sb = a.start_indices_batching_dims.value_or(Ints());
  std::vector<llvm::Value*> batch, window;
  const auto in_window = [&](int64_t d) {
    return std::find(a.offset_dims->begin(), a.offset_dims->end(), d) != a.offset_dims->end();
  };
  for (int64_t d = 0; d < i->shape().rank(); ++d) (in_window(d) ? window : batch).push_back(index.dims[d]);
  // Neighbours in a row are loaded together.
  if (const int64_t minor = MinorDim(i->shape()); minor >= 0 && (!in_window(minor) || i->shape().dim(minor) == 1))
    ir_.current()->addFnAttr(kGathers);
  Index in;
  in.dims.assign(s.rank(), ir_.I64(0));
  for (size_t c = 0; c < a.start_index_map->size(); ++c) {
    const int64_t d = (*a.start_index_map)[c];
    if ((*a.slice_sizes)[d] == s.dim(d)) continue;  // only start 0 fits
    Index at;
    at.dims = batch;
    if (*a.index_vector_dim < idx.rank())
      at.dims.insert(at.dims.begin() + *a.index_vector_dim, ir_.I64(static_cast<int64_t>(c)));
    ASSIGN_OR_RETURN(in.dims[d], ClampedStart(i->operand(1), at, s.dim(d), (*a.slice_sizes)[d]));
  }
  for (size_t c = 0; c < ob.size(); ++c) in.dims[ob[c]] = batch[sb[c] - (sb[c] > *a.index_vector_dim ? 1 : 0)];
  size_t w = 0;
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (std::find(a.collapsed_slice_dims->begin(), a.collapsed_slice_dims->end(), d) != a.collapsed_slice_dims->end() ||
        std::find(ob.begin(), ob.end(), d) != ob.end())
      continue;
    in.dims[d] = ir_.Add(in.dims[d], window[w++]);
  }
  return Emit(i->operand(0), in);
}

absl::StatusOr<std::vector<Val>> ElementEmitter::EmitWindow(const Instruction* i, const Index& index) {
  const Shape& s = i->operand(0)->shape();
  const attr::Win w = i->attrs().window.value_or(attr::Win(s.rank()));
  llvm::IRBuilder<>& b = ir_.b;
  ASSIGN_OR_RETURN(Accumulator reduced, Accumulator::Begin(*this, i));
  const bool unrolled = i == inside_ && std::count(inside_dims_.begin(), inside_dims_.end(), false) == 0;
  absl::Status status;
  std::vector<llvm::Value*> at(s.rank());
  std::function<void(int64_t, llvm::Value*)> nest = [&](int64_t d, llvm::Value* inside) {
    if (!status.ok()) return;
    if (d == s.rank()) {
      auto visit = [&] { status = reduced.Take(Index{at}); };
      if (inside)
        ir_.If(inside, visit);
      else
        visit();
      return;
    }
    auto step = [&](llvm::Value* k) {
      llvm::Value* p = ir_.b.CreateSub(
          ir_.b.CreateAdd(ir_.Mul(index.dims[d], w[d].stride), ir_.Mul(k, w[d].rhs_dilate)), ir_.I64(w[d].pad_low));
      llvm::Value* ok = inside;
      auto also = [&](llvm::Value* c) { ok = ok ? b.CreateAnd(ok, c) : c; };
      if (w[d].lhs_dilate > 1) {
        also(b.CreateICmpEQ(b.CreateSRem(p, ir_.I64(w[d].lhs_dilate)), ir_.I64(0)));
        also(b.CreateICmpSGE(p, ir_.I64(0)));
        p = b.CreateSDiv(p, ir_.I64(w[d].lhs_dilate));
        also(b.CreateICmpSLT(p, ir_.I64(s.dim(d))));
      } else if ((w[d].pad_low || w[d].pad_high) && (i != inside_ || !inside_dims_[static_cast<size_t>(d)])) {
        also(b.CreateICmpULT(p, ir_.I64(s.dim(d))));
      }
      at[d] = p;
      nest(d + 1, ok);
    };
    // LLVM would leave loops of more than a few taps, which then are not vectors. Those along neighbours it unrolls: it
    // would see that one result's tap is the next one's, and carry it over instead of loading it.
    if (unrolled && d != MinorDim(s))
      for (int64_t k = 0; k < w[d].size; ++k) step(ir_.I64(k));
    else
      ir_.Loop(ir_.I64(0), ir_.I64(w[d].size), 1, step);
  };
  nest(0, nullptr);
  RETURN_IF_ERROR(status);
  return reduced.Get();
}

int64_t MinorDim(const Shape& s) {
  int64_t minor = s.rank() - 1;
  while (minor > 0 && s.dim(minor) == 1) --minor;
  return minor;
}

int64_t RunningDim(const Instruction* i) {
  if (!i->Is(Opcode::ReduceWindow) || !i->shape().IsArray()) return -1;
  const Shape& s = i->shape();
  int64_t found = -1;
  for (int64_t d = 0; d < s.rank(); ++d) {
    const WindowDim& w = (*i->attrs().window)[static_cast<size_t>(d)];
    if (w == WindowDim{}) continue;
    WindowDim forward;
    forward.size = s.dim(d);
    forward.pad_low = s.dim(d) - 1;
    WindowDim backward;
    backward.size = s.dim(d);
    backward.pad_high = s.dim(d) - 1;
    if (found >= 0 || !(w == forward || w == backward)) return -1;
    found = d;
  }
  return found;
}

}  // namespace kiln
