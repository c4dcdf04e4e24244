#include "compiler/passes/sharding/partition_cost.h"

#include <algorithm>

#include "compiler/analysis/cost.h"
#include "compiler/hlo/trip_count.h"

namespace kiln {
namespace {

constexpr double kExchangedByte = 8;  // a byte of an exchange, in bytes that are written
constexpr double kExchange = 128;     // an exchange of nothing, many of which travel together, in bytes of one
constexpr double kFlop = 0.125;
constexpr double kTrips = 4;

double CostOf(const Computation* c);

double CostOf(const Instruction* i) {
  if (i->Is(Opcode::While)) {
    const auto trips = KnownTripCount(i);
    return (trips ? static_cast<double>(*trips) : kTrips) * (CostOf(*i->attrs().body) + CostOf(*i->attrs().condition));
  }
  double sum = 0;
  if (i->Is(Opcode::Conditional) || i->Is(Opcode::Call)) {
    for (const Computation* f : i->called()) sum = std::max(sum, CostOf(f));
    return sum;
  }
  if (InfoOf(i->opcode()).lowering == Lowering::Free) return 0;
  if (i->HasTrait(Collective)) {
    int64_t taken = 0;
    for (const Instruction* o : i->operands()) taken += o->shape().ByteSize();
    // A sum goes to each device's share and back.
    const double ways = i->Is(Opcode::AllReduce) ? 2 : 1;
    return kExchangedByte * (kExchange + ways * static_cast<double>(std::max(taken, i->shape().ByteSize())));
  }
  const Instruction* written = i->Is(Opcode::DynamicUpdateSlice) ? i->operand(1) : i;
  sum = static_cast<double>(written->shape().ByteSize());
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) sum += kFlop * static_cast<double>(CostOfKernel(i).flops);
  return sum;
}

double CostOf(const Computation* c) {
  double sum = 0;
  for (const auto& i : c->instructions()) sum += CostOf(i.get());
  return sum;
}

}  // namespace

double CostOfPartition(const Module& m) { return CostOf(m.entry()); }

}  // namespace kiln
