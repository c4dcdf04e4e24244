// Measures the error of every function against a reference in long double and holds the bounds of functions.def.
//
//   ulp_sweep [--stride=N]    every N-th bit pattern of f32 (default 4099), 2^32 / N samples of f64
//
// Prints the table of docs/numerics.md; fails if a bound is passed.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "aot/tools/runner.h"
#include "compiler/hlo/literal.h"

namespace kiln {
namespace {

struct Function {
  Opcode op;
  double narrow, single, wide;  // bounds
  long double (*reference)(long double x, long double y);
};

const Function kFunctions[] = {
#define UNARY(opcode, stem, real, complex, narrow, single, wide, reference) \
  {Opcode::opcode, narrow, single, wide,                                    \
   [](long double x, [[maybe_unused]] long double y) -> long double { return reference; }},
#define BINARY UNARY
#define ROOT UNARY
#include "compiler/hlo/functions.def"
};

struct Worst {
  double ulps = 0, x = 0, y = 0, got = 0;
  long double want = 0;
};

// The distance of two neighbours of type `t` at `v`, subnormal numbers included.
long double UnitAt(PrimitiveType t, long double v) {
  const TypeInfo& info = InfoOf(t);
  int exponent = 0;
  std::frexp(v, &exponent);
  return std::ldexp(1.0L, std::max(exponent - 1, 1 - ExponentBias(t)) - info.mantissa_bits);
}

double ErrorOf(PrimitiveType t, double got, long double want) {
  const double rounded = RoundToType(t, static_cast<double>(want));
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (got == rounded) return static_cast<double>(std::isinf(got) ? 0 : std::fabs(got - want) / UnitAt(t, want));
  if (std::isinf(want)) return INFINITY;
  if (std::isinf(got)) {
    // Infinity stands for the number behind the largest.
    const long double edge = std::ldexp(1.0L, (1 << InfoOf(t).exponent_bits) - 1 - ExponentBias(t));
    if (std::signbit(got) != std::signbit(want)) return INFINITY;
    return static_cast<double>(std::fabs(edge - std::fabs(want)) / UnitAt(t, edge / 2));
  }
  return static_cast<double>(std::fabs(got - want) / UnitAt(t, want));
}

// One program with every function on one pair of arrays.
std::unique_ptr<Module> Program(PrimitiveType t, int64_t n) {
  auto m = std::make_unique<Module>("ulps");
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  const Shape s = Shape::Array(t, {n});
  Instruction* x = c->AddParameter(0, s, "x");
  Instruction* y = c->AddParameter(1, s, "y");
  std::vector<Instruction*> results;
  for (const Function& f : kFunctions)
    results.push_back(
        c->Add(f.op, s, InfoOf(f.op).arity == 2 ? std::vector<Instruction*>{x, y} : std::vector<Instruction*>{x}));
  c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(std::vector<Shape>(results.size(), s)), results));
  return m;
}

// `bits(k)` gives the k-th pattern.
template <typename Bits>
bool Measure(PrimitiveType t, int64_t n, Bits bits, std::vector<Worst>* worst) {
  const Shape s = Shape::Array(t, {n});
  Literal x(s), y(s);
  const int64_t width = ByteWidth(t);
  std::mt19937_64 random(n);
  for (int64_t k = 0; k < n; ++k) {
    uint64_t a = bits(k);
    // Signalling NaNs become quiet ones, as reading them into a wider type does for the reference.
    if (t == PrimitiveType::F64 && std::isnan(std::bit_cast<double>(a))) a |= uint64_t{1} << 51;
    // The second operand: any pattern, or one near the first so that powers stay in range.
    uint64_t b = k % 3 ? random() : EncodeFloat(t, static_cast<double>(static_cast<int64_t>(random() % 41) - 20) / 4);
    if (t == PrimitiveType::F64 && std::isnan(std::bit_cast<double>(b))) b |= uint64_t{1} << 51;
    std::memcpy(x.mutable_data() + k * width, &a, static_cast<size_t>(width));
    std::memcpy(y.mutable_data() + k * width, &b, static_cast<size_t>(width));
  }
  CompileOptions o;
  o.cpu.levels = {"native"};
  o.cpu.flush_subnormals = false;
  auto run = RunModule(Program(t, n), {x, y}, o, {});
  if (!run.ok()) {
    std::fprintf(stderr, "%s\n", std::string(run.status().message()).c_str());
    return false;
  }
  for (size_t f = 0; f < std::size(kFunctions); ++f)
    for (int64_t k = 0; k < n; ++k) {
      const double a = x.Get(k).re, b = y.Get(k).re, got = run->results[f].Get(k).re;
      const long double want = kFunctions[f].reference(a, b);
      const double e = ErrorOf(t, got, want);
      if (e > (*worst)[f].ulps) (*worst)[f] = {e, a, b, got, want};
    }
  return true;
}

int Main(int argc, char** argv) {
  uint64_t stride = 4099;
  if (argc > 1 && std::strncmp(argv[1], "--stride=", 9) == 0) stride = std::strtoull(argv[1] + 9, nullptr, 10);
  if (stride == 0) return 2;
  const std::vector<PrimitiveType> types = {PrimitiveType::F8E5M2, PrimitiveType::F8E4M3FN, PrimitiveType::F16,
                                            PrimitiveType::BF16,   PrimitiveType::F32,      PrimitiveType::F64};
  std::vector<std::vector<Worst>> table;
  for (PrimitiveType t : types) {
    std::vector<Worst> worst(std::size(kFunctions));
    const int width = InfoOf(t).bits;
    bool ok = true;
    if (width <= 16) {
      ok = Measure(
          t, int64_t{1} << width, [](int64_t k) { return static_cast<uint64_t>(k); }, &worst);
    } else {
      constexpr int64_t kChunk = 1 << 20;
      const uint64_t total = (uint64_t{1} << 32) / stride;
      std::mt19937_64 random(7);
      for (uint64_t done = 0; done < total && ok; done += kChunk) {
        const int64_t n = static_cast<int64_t>(std::min<uint64_t>(kChunk, total - done));
        ok = Measure(
            t, n,
            [&](int64_t k) {
              const uint64_t q = done + static_cast<uint64_t>(k);
              if (t == PrimitiveType::F32) return q * stride;
              // Half of the samples are ordinary numbers, half any pattern; multiples of quarters now and then.
              if (q % 16 == 0)
                return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(q % 8192) - 4096) / 16);
              if (q % 2) return random();
              return std::bit_cast<uint64_t>(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -60));
            },
            &worst);
      }
    }
    if (!ok) return 1;
    table.push_back(std::move(worst));
    std::fprintf(stderr, "%s measured\n", std::string(TextOf(t)).c_str());
  }
  std::printf("| function |");
  for (PrimitiveType t : types) std::printf(" %s |", std::string(TextOf(t)).c_str());
  std::printf("\n|---|");
  for (size_t k = 0; k < types.size(); ++k) std::printf("---|");
  std::printf("\n");
  bool held = true;
  for (size_t f = 0; f < std::size(kFunctions); ++f) {
    std::printf("| %s |", std::string(TextOf(kFunctions[f].op)).c_str());
    for (size_t k = 0; k < types.size(); ++k) std::printf(" %.2f |", table[k][f].ulps);
    std::printf("\n");
    for (size_t k = 0; k < types.size(); ++k) {
      const int width = InfoOf(types[k]).bits;
      const double bound = width <= 16 ? kFunctions[f].narrow : width == 32 ? kFunctions[f].single : kFunctions[f].wide;
      const Worst& w = table[k][f];
      if (w.ulps <= bound) continue;
      held = false;
      std::fprintf(stderr,
                   "%s of %s: %.2f units, the bound is %.2f: x = %.17g (%a), y = %.17g: got %.17g, want %.20Lg\n",
                   std::string(TextOf(kFunctions[f].op)).c_str(), std::string(TextOf(types[k])).c_str(), w.ulps, bound,
                   w.x, w.x, w.y, w.got, w.want);
    }
  }
  return held ? 0 : 1;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
