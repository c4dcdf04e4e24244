#include "aot/tools/program.h"

#include <cmath>
#include <limits>

#include "aot/tools/difference.h"

namespace kiln {
namespace {

// What lies past a size: a value that no masked result shows.
Element Garbage() {
  Element e;
  e.i = 77;
  e.re = e.im = std::numeric_limits<double>::quiet_NaN();
  return e;
}

// Position in an array of extents `to` of element `linear` of one of extents `from`.
int64_t PositionIn(const Ints& to, const Ints& from, int64_t linear) {
  int64_t out = 0, stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    out += linear % from[d] * stride;
    linear /= from[d];
    stride *= to[d];
  }
  return out;
}

bool Fits(const Literal& l, const Shape& leaf) {
  if (l.type() != leaf.type() || l.shape().rank() != leaf.rank()) return false;
  for (int64_t d = 0; d < leaf.rank(); ++d)
    if (leaf.is_dynamic(d) ? l.shape().dim(d) > leaf.dim(d) : l.shape().dim(d) != leaf.dim(d)) return false;
  return true;
}

Literal OfBound(const Literal& l, const Shape& leaf, const Element& rest) {
  if (l.shape().dims() == leaf.dims()) return l;
  Literal out(Shape::Array(leaf.type(), leaf.dims()));
  for (int64_t k = 0; k < out.size(); ++k) out.Set(k, rest);
  for (int64_t k = 0; k < l.size(); ++k) out.Set(PositionIn(leaf.dims(), l.shape().dims(), k), l.Get(k));
  return out;
}

Literal OfSize(const Literal& l, const Ints& dims) {
  if (l.shape().dims() == dims) return l;
  Literal out(Shape::Array(l.type(), dims));
  for (int64_t k = 0; k < out.size(); ++k) out.Set(k, l.Get(PositionIn(l.shape().dims(), dims, k)));
  return out;
}

// Arrays of the bound, then the sizes, leaf by leaf.
Values Sized(const Values& values, const std::vector<Shape>& leaves, const Element& rest) {
  Values out, sizes;
  for (size_t k = 0; k < values.size(); ++k) {
    out.push_back(OfBound(values[k], leaves[k], rest));
    for (int64_t d = 0; d < leaves[k].rank(); ++d)
      if (leaves[k].is_dynamic(d)) sizes.push_back(Literal::Int(PrimitiveType::S32, values[k].shape().dim(d)));
  }
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}

std::vector<Shape> Leaves(const Shape& s) {
  std::vector<Shape> out;
  ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) {
    if (leaf.IsArray()) out.push_back(leaf);
  });
  return out;
}

absl::StatusOr<std::vector<Values>> RunOn(const Module& m, const std::vector<Values>& arguments,
                                          const CompileOptions& compile, const RunOptions& run) {
  if (arguments.size() == 1) {
    ASSIGN_OR_RETURN(RunResult r, RunModule(m.Clone(), arguments[0], compile, run));
    return std::vector<Values>{std::move(r.results)};
  }
  std::vector<DeviceProgram> programs;
  for (const Values& a : arguments) programs.push_back({&m, a});
  return RunDevices(programs, m.replica_count, m.partition_count, {}, compile, run);
}

}  // namespace

std::vector<Shape> ArgumentLeaves(const Module& m) {
  std::vector<Shape> out;
  for (const Instruction* p : m.entry()->parameters())
    for (Shape& s : Leaves(p->shape())) out.push_back(std::move(s));
  return out;
}

std::vector<Shape> ResultLeaves(const Module& m) { return Leaves(m.entry()->root()->shape()); }

Values SeededValues(const Module& m, uint64_t seed, int64_t device) {
  // Far apart, so that no device of one seed has the inputs of another seed's.
  constexpr uint64_t kStride = 1000003;
  Values out = SeededArguments(m, seed + kStride * static_cast<uint64_t>(device));
  const std::vector<Shape> leaves = ArgumentLeaves(m);
  for (size_t k = 0; k < out.size(); ++k) {
    Ints dims = leaves[k].dims();
    for (int64_t d = 0; d < leaves[k].rank(); ++d)
      if (leaves[k].is_dynamic(d)) dims[d] -= static_cast<int64_t>(seed % static_cast<uint64_t>(dims[d] + 1));
    out[k] = OfSize(out[k], dims);
  }
  return out;
}

Values WithSizes(const Values& values, const std::vector<Shape>& leaves) { return Sized(values, leaves, Element()); }

absl::StatusOr<Values> WithoutSizes(const Values& values, const std::vector<Shape>& leaves) {
  size_t sizes = 0;
  for (const Shape& s : leaves)
    for (int64_t d = 0; d < s.rank(); ++d) sizes += s.is_dynamic(d);
  if (values.size() != leaves.size() + sizes)
    return Internal("error: the compiled program returns ", values.size(), " arrays; its text has ", leaves.size(),
                    " with ", sizes, " sizes");
  Values out;
  size_t next = leaves.size();
  for (size_t k = 0; k < leaves.size(); ++k) {
    Ints dims = leaves[k].dims();
    for (int64_t d = 0; d < leaves[k].rank(); ++d)
      if (leaves[k].is_dynamic(d)) dims[d] = values[next++].Get(0).i;
    for (int64_t d = 0; d < leaves[k].rank(); ++d)
      if (dims[d] < 0 || dims[d] > leaves[k].dim(d))
        return InvalidArgument("error: array ", k, " has size ", dims[d], " in ", leaves[k].ToString(false));
    out.push_back(OfSize(values[k], dims));
  }
  return out;
}

absl::StatusOr<std::vector<Values>> RunProgram(const Module& m, const std::vector<Values>& arguments,
                                               const CompileOptions& compile, const RunOptions& run) {
  const int64_t devices = m.replica_count * m.partition_count;
  if (static_cast<int64_t>(arguments.size()) != devices)
    return InvalidArgument("error: arguments of ", arguments.size(), " devices given, the program has ", devices);
  const std::vector<Shape> in = ArgumentLeaves(m), out = ResultLeaves(m);
  for (const Values& a : arguments) {
    if (a.size() != in.size())
      return InvalidArgument("error: ", a.size(), " arrays given, the program takes ", in.size());
    for (size_t k = 0; k < a.size(); ++k)
      if (!Fits(a[k], in[k]))
        return InvalidArgument("error: argument ", k, " is ", a[k].shape().ToString(false), ", the program takes ",
                               in[k].ToString(false));
  }
  std::vector<Values> results;
  if (run.backend == "reference") {  // knows sizes as parts of values
    ASSIGN_OR_RETURN(results, RunOn(m, arguments, compile, run));
  } else {
    std::unique_ptr<Module> program = m.Clone();
    RETURN_IF_ERROR(MakeStatic(program.get()));
    std::vector<Values> given;
    for (const Values& a : arguments) given.push_back(Sized(a, in, Garbage()));
    ASSIGN_OR_RETURN(const std::vector<Values> padded, RunOn(*program, given, compile, run));
    for (const Values& p : padded) {
      ASSIGN_OR_RETURN(Values r, WithoutSizes(p, out));
      results.push_back(std::move(r));
    }
  }
  for (const Values& r : results) {
    if (r.size() != out.size()) return Internal("error: ", r.size(), " results; the program has ", out.size());
    for (size_t k = 0; k < r.size(); ++k)
      if (!Fits(r[k], out[k]))
        return Internal("error: the result ", k, " of backend ", run.backend, " is ", r[k].shape().ToString(false),
                        "; the program says ", out[k].ToString(false));
  }
  return results;
}

absl::Status SameValues(const Values& got, const Values& want, const Tolerance& tolerance) {
  if (got.size() != want.size()) return InvalidArgument(got.size(), " results, expected ", want.size());
  auto near = [&](double g, double w) {
    if (g == w || (std::isnan(g) && std::isnan(w))) return true;
    if (!std::isfinite(g) || !std::isfinite(w)) return false;
    return std::fabs(g - w) <= tolerance.absolute + tolerance.relative * std::fabs(w);
  };
  for (size_t r = 0; r < want.size(); ++r) {
    if (got[r].type() != want[r].type() || got[r].shape().dims() != want[r].shape().dims())
      return InvalidArgument("result ", r, " is ", got[r].shape().ToString(false), ", expected ",
                             want[r].shape().ToString(false));
    const PrimitiveType t = want[r].type();
    const bool real = IsFloat(t) || IsComplex(t);
    for (int64_t k = 0; k < want[r].size(); ++k) {
      const Element g = got[r].Get(k), w = want[r].Get(k);
      if (real ? near(g.re, w.re) && near(g.im, w.im) : g.i == w.i) continue;
      return InvalidArgument("result ", r, ": ", Describe(CompareArrays(got[r], want[r]), got[r], want[r]),
                             "; the first beyond the tolerance is element ", k);
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
