#include "compiler/analysis/cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/analysis/overwritten.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/sort_key.h"

namespace kiln {
namespace {

// Of a library call that is a product of matrices; 0 of others.
int64_t FlopsOfCall(const Instruction* i) {
  const auto& target = i->attrs().custom_call_target;
  if (!target || (*target != kGemmTarget && *target != kGemmF8Target)) return 0;
  const absl::StatusOr<GemmConfig> config = GemmConfigOf(i);
  if (!config.ok() || !i->shape().IsArray()) return 0;
  int64_t k = 1;
  for (const int64_t d : config->lhs_contracting) k *= i->operand(0)->shape().dim(d);
  return 2 * i->shape().ElementCount() * k;
}

// 5 n log2(n) for every transform of n complex numbers, half of it where one side is real.
int64_t FlopsOfTransform(const Instruction* i) {
  double n = 1;
  for (const int64_t d : *i->attrs().fft_length) n *= static_cast<double>(d);
  const FftType type = *i->attrs().fft_type;
  const bool real = type == FftType::RFFT || type == FftType::IRFFT;
  const Shape& lines = type == FftType::RFFT ? i->operand(0)->shape() : i->shape();
  return static_cast<int64_t>(5 * static_cast<double>(lines.ElementCount()) * std::log2(std::max(n, 1.0))) /
         (real ? 2 : 1);
}

int64_t Flops(const Instruction* i) {
  const int64_t n = i->shape().IsArray() ? i->shape().ElementCount() : 0;
  switch (i->opcode()) {
    case Opcode::Dot: {
      int64_t k = 1;
      for (int64_t d : i->attrs().lhs_contracting_dims.value_or(Ints())) k *= i->operand(0)->shape().dim(d);
      return 2 * n * k;
    }
    case Opcode::Convolution: {
      const Shape& kernel = i->operand(1)->shape();
      const int64_t outputs = kernel.dim(i->attrs().dim_labels->kernel_output);
      return outputs ? 2 * n * (kernel.ElementCount() / outputs) : 0;
    }
    case Opcode::CustomCall:
      return FlopsOfCall(i);
    case Opcode::Fft:
      return FlopsOfTransform(i);
    case Opcode::Reduce:
      return i->operand(0)->shape().ElementCount();
    case Opcode::Fusion: {
      int64_t sum = 0;
      for (const auto& x : (*i->attrs().calls)->instructions()) sum += Flops(x.get());
      return sum;
    }
    default:
      return i->IsElementwise() && !i->Is(Opcode::Copy) ? n : 0;
  }
}

// The most steps that wait for each other, and what is no addition, in additions (Cost::slow).
int64_t Slow(const Instruction* i) {
  // Measured on one core, beside its additions in vectors.
  constexpr int64_t kFunction = 60, kPower = 200, kDivision = 8, kComparison = 400, kDigit = 100, kDraw = 100,
                    kSerial = 60, kUpdate = 300, kWindow = 4;
  const auto elements = [](const Shape& s) {
    return s.IsArray()                                    ? s.ElementCount()
           : s.tuple().empty() || !s.tuple()[0].IsArray() ? 0
                                                          : s.tuple()[0].ElementCount();
  };
  const int64_t n = elements(i->shape());
  const auto log2 = [](int64_t x) {
    return static_cast<int64_t>(std::ceil(std::log2(std::max<double>(static_cast<double>(x), 2))));
  };
  switch (i->opcode()) {
    case Opcode::Fusion: {
      int64_t sum = 0;
      for (const auto& x : (*i->attrs().calls)->instructions()) sum += Slow(x.get());
      return sum;
    }
    case Opcode::Power:
      return n * kPower;
    case Opcode::Sort: {
      const Ints dims = i->operand(0)->shape().dims();
      const size_t along = i->attrs().dimensions ? static_cast<size_t>((*i->attrs().dimensions)[0]) : dims.size() - 1;
      if (dims[along] < kFewestByDigits) return n * log2(dims[along]) * kComparison;
      const std::vector<SortKey> keys = KeysOfSort(i);
      int64_t digits = 0;
      for (const SortKey& key : keys) digits += ByteWidth(key.value->shape().type());
      return n * (keys.empty() ? log2(dims[along]) * kComparison : digits * kDigit);
    }
    case Opcode::TopK:
      return i->operand(0)->shape().ElementCount() * kFunction;
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter: {
      int64_t window = 1;
      bool running = false;
      for (const WindowDim& w : i->attrs().window.value_or(attr::Win())) {
        window *= w.size;
        running = running || (w.size > 16 && w.pad_low + w.pad_high >= w.size - 1);
      }
      return running ? n * kSerial : n * window * kWindow;
    }
    case Opcode::RngBitGenerator:
      return (i->shape().IsTuple() ? elements(i->shape().tuple()[1]) : n) * kDraw;
    case Opcode::Scatter:
      return i->operand(i->operand_count() - 1)->shape().ElementCount() * kUpdate;
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
      return n * i->operand(0)->shape().dims().back() * kDivision;
    case Opcode::CustomCall: {
      // A factorisation, or whatever else works on a matrix.
      if (FlopsOfCall(i) > 0 || i->operand_count() == 0 || !i->operand(0)->shape().IsArray()) return 0;
      const Shape& a = i->operand(0)->shape();
      return a.rank() < 2 ? 0 : a.ElementCount() * a.dims().back() * kPower;
    }
    default:
      return i->HasTrait(Transcendental) ? n * kFunction : i->HasTrait(Costly) ? n * kDivision : 0;
  }
}

// Flops of products both of whose operands `takes`.
template <typename Takes>
int64_t FlopsOfProducts(const Instruction* i, Takes takes) {
  if (i->Is(Opcode::Fusion)) {
    int64_t sum = 0;
    for (const auto& x : (*i->attrs().calls)->instructions()) sum += FlopsOfProducts(x.get(), takes);
    return sum;
  }
  if (!i->Is(Opcode::Dot) && !i->Is(Opcode::Convolution) && !i->Is(Opcode::CustomCall)) return 0;
  for (int64_t k = 0; k < 2; ++k)
    if (k >= i->operand_count() || !i->operand(k)->shape().IsArray() || !takes(i->operand(k)->shape().type())) return 0;
  return Flops(i);
}

// Bytes of operand `k` that the kernel of `i` reads: slices, gathers and updates touch a part.
int64_t OperandBytes(const Instruction* i, int64_t k) {
  const int64_t whole = i->operand(k)->shape().ByteSize();
  if (!i->Is(Opcode::Fusion)) return whole;
  const Instruction* p = (*i->attrs().calls)->parameter(k);
  int64_t touched = 0;
  for (const Instruction* u : p->users()) {
    const bool part =
        u->Is(Opcode::Slice) || u->Is(Opcode::DynamicSlice) || (u->Is(Opcode::Gather) && u->operand(0) == p);
    if (part)
      touched += u->shape().ByteSize();
    else if (u->Is(Opcode::DynamicUpdateSlice) && u->operand(0) == p)
      touched += 0;
    else if (u->Is(Opcode::Scatter) && u->operand(0) == p)
      touched += u->operand(u->operand_count() - 1)->shape().ByteSize();
    else
      return whole;
  }
  return std::min(whole, touched);
}

int64_t BytesWritten(const Instruction* r) {
  if (r->Is(Opcode::DynamicUpdateSlice)) return r->operand(1)->shape().ByteSize();
  if (r->Is(Opcode::Scatter)) return r->operand(r->operand_count() - 1)->shape().ByteSize();
  return r->shape().ByteSize();
}

int64_t ResultBytes(const Instruction* i) {
  if (!i->Is(Opcode::Fusion)) return BytesWritten(i);
  if (StartsOverwritten(i)) return 0;
  const Instruction* root = (*i->attrs().calls)->root();
  if (!root->Is(Opcode::Tuple)) return BytesWritten(root);
  int64_t bytes = 0;
  for (const Instruction* r : root->operands()) bytes += BytesWritten(r);
  return bytes;
}

}  // namespace

Cost CostOfKernel(const Instruction* i) {
  Cost c{Flops(i),
         ResultBytes(i),
         FlopsOfProducts(i, [](PrimitiveType t) { return InfoOf(t).bits == 8; }),
         FlopsOfProducts(i, [](PrimitiveType t) { return t == PrimitiveType::BF16; }),
         FlopsOfProducts(i, [](PrimitiveType t) { return t == PrimitiveType::F16; }),
         Slow(i)};
  for (int64_t o = 0; o < i->operand_count(); ++o) c.bytes_accessed += OperandBytes(i, o);
  return c;
}

double EstimatedMicroseconds(const Cost& cost, const CoreModel& core) {
  const bool cached = cost.bytes_accessed <= core.cache_bytes;
  const auto plain = static_cast<double>(cost.flops - cost.flops_of_bytes - cost.flops_of_bf16 - cost.flops_of_f16);
  const double flops = plain + static_cast<double>(cost.slow) / core.slow_speed +
                       static_cast<double>(cost.flops_of_bytes) / core.byte_speed +
                       static_cast<double>(cost.flops_of_bf16) / core.bf16_speed +
                       static_cast<double>(cost.flops_of_f16) / core.f16_speed;
  const double bytes_per_us = cached ? core.cached_bytes_per_us : core.bytes_per_us;
  return core.launch_us + std::max(static_cast<double>(cost.bytes_accessed) / bytes_per_us, flops / core.flops_per_us);
}

Cost CostOf(const Module& m) {
  Cost c;
  std::vector<const Computation*> todo = {m.entry()};
  for (size_t k = 0; k < todo.size(); ++k) {
    for (const auto& i : todo[k]->instructions()) {
      if (InfoOf(i->opcode()).lowering == Lowering::Free) continue;
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional)) {
        for (const Computation* f : i->called()) todo.push_back(f);
        continue;
      }
      const Cost one = CostOfKernel(i.get());
      c.flops += one.flops;
      c.bytes_accessed += one.bytes_accessed;
    }
  }
  return c;
}

}  // namespace kiln
