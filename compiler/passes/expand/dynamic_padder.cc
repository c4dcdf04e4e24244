// Bounded dynamic dimensions as static ones: arrays keep their bounds, sizes become scalars beside them, and what lies
// past a size is masked wherever it could reach a result.
//
// Sizes are inferred operation by operation within a computation. An argument's dynamic dimension gets its size from a
// new s32[] argument, a result's is returned as a new s32[] result; both come last, in order.
#include <algorithm>
#include <map>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

using Sizes = std::map<int64_t, Instruction*>;  // by dimension; absent: static

class Padder {
 public:
  Padder(Module& m, Computation* c) : m_(m), c_(c) {}

  // True if the computation has anything dynamic.
  static bool Concerns(const Computation* c) {
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::SetDimensionSize) || i->Is(Opcode::GetDimensionSize) || i->Is(Opcode::DynamicReshape) ||
          i->shape().HasDynamic())
        return true;
    return false;
  }

  absl::Status Run() {
    const bool entry = c_ == m_.entry();
    if (entry) Arguments();
    for (Instruction* i : c_->PostOrder()) RETURN_IF_ERROR(Visit(i));
    RETURN_IF_ERROR(entry ? Results() : Refuse(c_->root()));
    for (const auto& i : c_->instructions()) Strip(&i->mutable_shape());
    return absl::OkStatus();
  }

 private:
  static void Strip(Shape* s) {
    for (Shape& e : s->mutable_tuple()) Strip(&e);
    for (int64_t d = 0; d < s->rank(); ++d)
      if (s->is_dynamic(d)) s->set_dynamic(d, false);
  }

  Expr Int(int64_t v) { return IntegerIn(c_, PrimitiveType::S32, v); }
  Expr SizeOf(Instruction* i, int64_t d) {
    auto it = sizes_[i].find(d);
    return it == sizes_[i].end() ? Int(i->shape().dim(d)) : Expr(it->second);
  }
  bool Dynamic(Instruction* i) { return !sizes_[i].empty(); }

  absl::Status Refuse(Instruction* i) {
    for (Instruction* o : i->operands())
      if (Dynamic(o)) return ErrorAt(i, "a dynamic dimension is not supported here", absl::StatusCode::kUnimplemented);
    return absl::OkStatus();
  }

  // `x` with `value` past the size of each dimension in `dims` that has one.
  Instruction* Masked(Instruction* x, const Ints& dims, Expr value) {
    Expr out = x;
    for (int64_t d : dims) {
      auto it = sizes_[x].find(d);
      if (it == sizes_[x].end()) continue;
      const Ints extents = x->shape().dims();
      Expr inside = CompareExpr("LT", IotaOf(c_, PrimitiveType::S32, extents, d), BroadcastTo(it->second, extents));
      out = SelectExpr(inside, out, BroadcastTo(value, extents));
    }
    return out.get();
  }
  Expr Zero(const Instruction* x) { return c_->AddConstant(Literal::Of(x->shape().type(), 0)); }

  static Ints All(const Instruction* i) {
    Ints out;
    for (int64_t d = 0; d < i->shape().rank(); ++d) out.push_back(d);
    return out;
  }

  void Arguments() {
    const int64_t count = static_cast<int64_t>(c_->parameters().size());
    for (int64_t p = 0; p < count; ++p) {
      Instruction* x = c_->parameter(p);
      for (int64_t d = 0; d < x->shape().rank(); ++d) {
        if (!x->shape().is_dynamic(d)) continue;
        const int64_t number = static_cast<int64_t>(c_->parameters().size());
        const std::string name = absl::StrCat(
            p < static_cast<int64_t>(m_.argument_names.size()) ? m_.argument_names[p] : x->name(), "_size", d);
        Instruction* size = c_->AddParameter(number, Shape::Scalar(PrimitiveType::S32), name);
        sizes_[x][d] = size;
        m_.dimension_arguments.push_back({number, x->shape().dim(d)});
        if (!m_.argument_names.empty()) m_.argument_names.push_back(name);
        if (m_.entry_layout) m_.entry_layout->parameters.push_back(size->shape());
      }
    }
    if (m_.entry_layout)
      for (Shape& s : m_.entry_layout->parameters) Strip(&s);
  }

  absl::Status Results() {
    Instruction* root = c_->root();
    std::vector<Instruction*> parts = {root}, sizes;
    if (root->Is(Opcode::Tuple)) parts = root->operands();
    for (Instruction* p : parts)
      for (const auto& [d, size] : sizes_[p]) sizes.push_back(size);
    if (sizes.empty()) {
      if (m_.entry_layout) Strip(&m_.entry_layout->result);
      return absl::OkStatus();
    }
    parts.insert(parts.end(), sizes.begin(), sizes.end());
    std::vector<Shape> shapes;
    for (Instruction* p : parts) shapes.push_back(p->shape());
    const bool single = !root->shape().IsTuple();
    c_->set_root(c_->Add(Opcode::Tuple, Shape::Tuple(shapes), parts));
    if (m_.entry_layout) {
      std::vector<Shape> old = single ? std::vector<Shape>{m_.entry_layout->result} : m_.entry_layout->result.tuple();
      for (const Instruction* s : sizes) old.push_back(s->shape());
      m_.entry_layout->result = Shape::Tuple(old);
      Strip(&m_.entry_layout->result);
    }
    if (single)
      for (AliasEntry& a : m_.aliases) a.output.insert(a.output.begin(), 0);
    return absl::OkStatus();
  }

  // floor((size + padding - window) / stride) + 1 positions, none if the window does not fit.
  Expr Positions(Expr size, const WindowDim& w) {
    Expr padded = size;
    if (w.lhs_dilate > 1)
      padded = Binary(Opcode::Maximum, (size - 1.0) * static_cast<double>(w.lhs_dilate) + 1.0, Int(0));
    Expr room = padded + static_cast<double>(w.pad_low + w.pad_high - w.DilatedSize());
    Expr count = room / static_cast<double>(w.stride) + 1.0;
    return SelectExpr(room < 0.0, Int(0), count);
  }

  absl::Status Visit(Instruction* i) {
    switch (i->opcode()) {
      case Opcode::SetDimensionSize: {
        Instruction* x = i->operand(0);
        const int64_t d = (*i->attrs().dimensions)[0];
        Sizes sizes = sizes_[x];
        sizes[d] = i->operand(1);
        // The array is the operand's own; a copy keeps the two sizes apart.
        Shape s = x->shape();
        Strip(&s);
        Instruction* same = c_->Add(Opcode::Copy, s, {x});
        same->set_loc(i->loc());
        if (!i->shape().is_dynamic(d)) sizes.erase(d);
        return Replace(i, same, sizes);
      }
      case Opcode::GetDimensionSize:
        return Replace(i, SizeOf(i->operand(0), (*i->attrs().dimensions)[0]).get(), {});
      case Opcode::DynamicReshape:
        return Reshape(i, true);
      default:
        break;
    }
    bool any = false;
    for (Instruction* o : i->operands()) any = any || Dynamic(o);
    if (!any) return absl::OkStatus();
    Sizes out;
    if (i->IsElementwise() || i->Is(Opcode::OptimizationBarrier)) {
      for (Instruction* o : i->operands())
        if (o->shape().rank() == i->shape().rank())
          for (const auto& entry : sizes_[o]) out.insert(entry);
      sizes_[i] = out;
      return absl::OkStatus();
    }
    const Attributes& a = i->attrs();
    Instruction* x = i->operand(0);
    const Sizes in = sizes_[x];
    switch (i->opcode()) {
      case Opcode::Broadcast:
        for (const auto& [d, s] : in) out[(*a.dimensions)[d]] = s;
        break;
      case Opcode::Transpose:
        for (int64_t d = 0; d < i->shape().rank(); ++d)
          if (auto it = in.find((*a.dimensions)[d]); it != in.end()) out[d] = it->second;
        break;
      case Opcode::Reshape:
        return Reshape(i, false);
      case Opcode::Reduce: {
        const int64_t n = i->operand_count() / 2;
        for (int64_t k = 0; k < n; ++k) {
          Instruction* o = i->operand(k);
          i->ReplaceOperand(k, Masked(o, *a.dimensions, i->operand(n + k)));
        }
        int64_t kept = 0;
        for (int64_t d = 0; d < x->shape().rank(); ++d) {
          if (std::find(a.dimensions->begin(), a.dimensions->end(), d) != a.dimensions->end()) continue;
          if (auto it = in.find(d); it != in.end()) out[kept] = it->second;
          ++kept;
        }
        if (n > 1 && !out.empty()) return Refuse(i);
        break;
      }
      case Opcode::ReduceWindow: {
        if (i->operand_count() != 2) return Refuse(i);
        i->ReplaceOperand(0, Masked(x, All(x), i->operand(1)));
        for (const auto& [d, s] : in) out[d] = Positions(s, (*a.window)[d]).get();
        break;
      }
      case Opcode::Dot: {
        const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints()),
                   lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
        Instruction* y = i->operand(1);
        const Sizes in2 = sizes_[y];
        // A size that only one side knows holds for both: what lies past it must not meet anything.
        for (size_t k = 0; k < lc.size(); ++k) {
          if (in.count(lc[k]) && !in2.count(rc[k])) sizes_[y][rc[k]] = in.at(lc[k]);
          if (!in.count(lc[k]) && in2.count(rc[k])) sizes_[x][lc[k]] = in2.at(rc[k]);
        }
        Instruction *l = Masked(x, lc, Zero(x)), *r = Masked(y, rc, Zero(y));
        sizes_[x] = in;
        sizes_[y] = in2;
        i->ReplaceOperand(0, l);
        i->ReplaceOperand(1, r);
        int64_t at = 0;
        for (size_t k = 0; k < lb.size(); ++k, ++at) {
          if (in.count(lb[k])) out[at] = in.at(lb[k]);
          if (in2.count(rb[k])) out[at] = in2.at(rb[k]);
        }
        auto free = [&](const Shape& s, const Sizes& from, const Ints& b, const Ints& c) {
          for (int64_t d = 0; d < s.rank(); ++d) {
            if (std::find(b.begin(), b.end(), d) != b.end() || std::find(c.begin(), c.end(), d) != c.end()) continue;
            if (from.count(d)) out[at] = from.at(d);
            ++at;
          }
        };
        free(x->shape(), in, lb, lc);
        free(y->shape(), in2, rb, rc);
        break;
      }
      case Opcode::Convolution: {
        if (Dynamic(i->operand(1))) return Refuse(i);
        const ConvDimensionNumbers& n = *a.dim_labels;
        i->ReplaceOperand(0, Masked(x, All(x), Zero(x)));
        for (const auto& [d, s] : in) {
          if (d == n.input_batch && a.batch_group_count.value_or(1) == 1) out[n.output_batch] = s;
          for (size_t k = 0; k < n.input_spatial.size(); ++k)
            if (d == n.input_spatial[k]) out[n.output_spatial[k]] = Positions(s, (*a.window)[k]).get();
        }
        break;
      }
      case Opcode::Concatenate: {
        const int64_t along = (*a.dimensions)[0];
        bool joined = false;
        for (Instruction* o : i->operands()) {
          for (const auto& [d, s] : sizes_[o])
            if (d == along)
              joined = true;
            else
              out[d] = s;
        }
        if (joined) {
          // Each part overwrites what lies past the size of the one before it.
          Expr at = Int(0), whole = BroadcastTo(Zero(i), i->shape().dims());
          for (Instruction* o : i->operands()) {
            std::vector<Expr> starts(i->shape().rank(), Int(0));
            starts[along] = at;
            whole = UpdateOf(whole, o, starts);
            at = at + SizeOf(o, along);
          }
          out[along] = at.get();
          return Replace(i, whole.get(), out);
        }
        break;
      }
      case Opcode::Slice:
        for (const auto& [d, s] : in) {
          const SliceDim& r = (*a.slice)[d];
          Expr rest = Expr(s) - static_cast<double>(r.start);
          Expr count = (rest + static_cast<double>(r.stride - 1)) / static_cast<double>(r.stride);
          count = Binary(Opcode::Minimum, count, Int(i->shape().dim(d)));
          out[d] = SelectExpr(rest < 0.0, Int(0), count).get();
        }
        break;
      case Opcode::Pad: {
        i->ReplaceOperand(0, Masked(x, All(x), i->operand(1)));
        for (const auto& [d, s] : in) {
          const PadDim& p = (*a.padding)[d];
          Expr between = Binary(Opcode::Maximum, Expr(s) - 1.0, Int(0)) * static_cast<double>(p.interior);
          Expr total = Expr(s) + between + static_cast<double>(p.low + p.high);
          out[d] = Binary(Opcode::Maximum, total, Int(0)).get();
        }
        break;
      }
      case Opcode::DynamicUpdateSlice:
        if (Dynamic(i->operand(1))) return Refuse(i);
        out = in;
        break;
      case Opcode::DynamicSlice:
        for (const auto& [d, s] : in)
          if (i->shape().dim(d) == x->shape().dim(d)) out[d] = s;
        break;
      case Opcode::Reverse: {
        Expr y = i;
        const Ints dims = i->shape().dims();
        const std::vector<Instruction*> users = i->users();
        const bool root = i->IsRoot();
        for (int64_t d : *a.dimensions) {
          if (!in.count(d)) continue;
          // What lay past the size is in front now: start behind it.
          Ints wide = dims;
          Expr twice = ConcatOf({y, BroadcastTo(Zero(i), dims)}, d);
          std::vector<Expr> starts(i->shape().rank(), Int(0));
          starts[d] = Int(dims[d]) - Expr(in.at(d));
          y = DynamicSliceOf(twice, starts, wide);
        }
        sizes_[y.get()] = in;
        if (y.get() != i) {
          for (Instruction* u : users) i->ReplaceUseWith(u, y.get());
          if (root) c_->set_root(y.get());
        }
        sizes_[i] = {};
        return absl::OkStatus();
      }
      case Opcode::Gather: {
        if (Dynamic(x)) return Refuse(i);
        // Batch dimensions of the result are those of the indices, in order.
        const Ints offset = a.offset_dims.value_or(Ints());
        int64_t from = 0;
        for (int64_t d = 0; d < i->shape().rank(); ++d) {
          if (std::find(offset.begin(), offset.end(), d) != offset.end()) continue;
          if (from == a.index_vector_dim.value_or(-1)) ++from;
          if (auto it = sizes_[i->operand(1)].find(from); it != sizes_[i->operand(1)].end()) out[d] = it->second;
          ++from;
        }
        break;
      }
      case Opcode::Sort: {
        const int64_t along = a.dimensions ? (*a.dimensions)[0] : x->shape().rank() - 1;
        if (in.count(along)) return Sort(i, along, in);
        if (i->shape().IsTuple()) return Refuse(i);
        out = in;
        break;
      }
      case Opcode::Tuple:
        return absl::OkStatus();
      default:
        return Refuse(i);
    }
    sizes_[i] = out;
    return absl::OkStatus();
  }

  absl::Status Replace(Instruction* i, Instruction* with, const Sizes& sizes) {
    if (with != i) {
      i->ReplaceAllUsesWith(with);
      c_->Remove(i);
    }
    if (!sizes.empty()) sizes_[with] = sizes;
    return absl::OkStatus();
  }

  // What lies past the size sorts behind everything else: a flag beside the keys decides first.
  absl::Status Sort(Instruction* i, int64_t along, const Sizes& in) {
    const Ints dims = i->operand(0)->shape().dims();
    Expr past = CompareExpr("GE", IotaOf(c_, PrimitiveType::S32, dims, along), BroadcastTo(in.at(along), dims));
    Computation* old = *i->attrs().to_apply;
    Computation* compare = m_.AddComputation("padded_compare");
    std::vector<Instruction*> arguments;
    const int64_t n = i->operand_count();
    for (int64_t k = 0; k < 2 * n; ++k)
      arguments.push_back(compare->AddParameter(k, old->parameter(k)->shape(), "key"));
    const Shape flag = Shape::Scalar(PrimitiveType::Pred);
    Expr a = compare->AddParameter(2 * n, flag, "past"), b = compare->AddParameter(2 * n + 1, flag, "past");
    absl::flat_hash_map<const Instruction*, Instruction*> map;
    for (Instruction* k : old->PostOrder()) {
      if (k->Is(Opcode::Parameter)) {
        map[k] = arguments[*k->attrs().parameter_number];
        continue;
      }
      std::vector<Instruction*> operands;
      for (Instruction* o : k->operands()) operands.push_back(map.at(o));
      map[k] = compare->AddClone(k, k->shape(), operands);
    }
    Expr ordered = map.at(old->root());
    compare->set_root(SelectExpr(CompareExpr("NE", a, b), b, ordered).get());
    std::vector<Instruction*> operands = i->operands();
    operands.push_back(past.get());
    std::vector<Shape> shapes;
    for (Instruction* o : operands) shapes.push_back(Shape::Array(o->shape().type(), dims));
    Instruction* sort = c_->AddClone(i, Shape::Tuple(shapes), operands);
    sort->attrs().to_apply = compare;
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < n; ++k) {
      Instruction* g = c_->Add(Opcode::GetTupleElement, shapes[k], {sort});
      g->attrs().tuple_index = k;
      sizes_[g] = in;
      parts.push_back(g);
    }
    if (!i->shape().IsTuple()) return Replace(i, parts[0], in);
    for (Instruction* u : std::vector<Instruction*>(i->users())) {
      if (!u->Is(Opcode::GetTupleElement)) return Refuse(i);
      Instruction* part = parts[*u->attrs().tuple_index];
      u->ReplaceAllUsesWith(part);
    }
    return absl::OkStatus();
  }

  // Elements keep their row-major order among those that count: position by position, where each comes from.
  absl::Status Reshape(Instruction* i, bool stated) {
    Instruction* x = i->operand(0);
    const Shape to = i->shape();
    std::vector<Expr> in, out;
    for (int64_t d = 0; d < x->shape().rank(); ++d) in.push_back(SizeOf(x, d));
    Sizes sizes;
    int64_t open = -1;
    for (int64_t d = 0; d < to.rank(); ++d) {
      out.push_back(Int(to.dim(d)));
      if (stated && to.is_dynamic(d)) sizes[d] = i->operand(d + 1);
      if (!stated && to.is_dynamic(d)) {
        if (open >= 0)
          return ErrorAt(i, "a reshape to two dynamic dimensions does not say their sizes",
                         absl::StatusCode::kUnimplemented);
        open = d;
      }
    }
    if (!stated) {
      if (open < 0)
        return ErrorAt(i, "a reshape of a dynamic dimension to static ones", absl::StatusCode::kUnimplemented);
      Expr total = Int(1);
      for (const Expr& e : in) total = total * e;
      int64_t rest = 1;
      for (int64_t d = 0; d < to.rank(); ++d)
        if (d != open) rest *= to.dim(d);
      sizes[open] = (total / static_cast<double>(std::max<int64_t>(rest, 1))).get();
    }
    for (const auto& [d, s] : sizes) out[d] = s;
    const Ints dims = to.dims();
    Expr linear = BroadcastTo(Int(0), dims);
    for (int64_t d = 0; d < to.rank(); ++d)
      linear = linear * BroadcastTo(out[d], dims) + IotaOf(c_, PrimitiveType::S32, dims, d);
    Expr flat = BroadcastTo(Int(0), dims);
    int64_t stride = 1;
    for (int64_t d = x->shape().rank() - 1; d >= 0; --d) {
      Expr size = BroadcastTo(Binary(Opcode::Maximum, in[d], Int(1)), dims);
      flat = flat + Binary(Opcode::Remainder, linear, size) * static_cast<double>(stride);
      linear = linear / size;
      stride *= x->shape().dim(d);
    }
    Expr source = ReshapeTo(x, {stride});
    Instruction* g = c_->Add(Opcode::Gather, Shape::Array(to.type(), dims), {source.get(), flat.get()});
    g->attrs().offset_dims = Ints{};
    g->attrs().collapsed_slice_dims = Ints{0};
    g->attrs().start_index_map = Ints{0};
    g->attrs().index_vector_dim = to.rank();
    g->attrs().slice_sizes = Ints{1};
    g->set_loc(i->loc());
    return Replace(i, g, sizes);
  }

  Module& m_;
  Computation* c_;
  absl::flat_hash_map<const Instruction*, Sizes> sizes_;
};

}  // namespace

absl::StatusOr<bool> DynamicPadder(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    if (!Padder::Concerns(c) || !ctx.Take()) continue;
    RETURN_IF_ERROR(Padder(m, c).Run());
    changed = true;
  }
  return changed;
}

}  // namespace kiln
