#include "compiler/hlo/instruction_list.h"

#include "compiler/hlo/instruction.h"

namespace kiln {

InstructionList::~InstructionList() = default;

void InstructionList::Append(std::unique_ptr<Instruction> instruction) {
  instruction->slot_ = slots_.size();
  slots_.push_back(std::move(instruction));
  ++live_;
}

void InstructionList::Remove(Instruction* instruction) {
  slots_[instruction->slot_].reset();
  --live_;
  constexpr size_t kFewPlaces = 32;
  if (slots_.size() > kFewPlaces && live_ < slots_.size() / 2) CloseHoles();
}

void InstructionList::Assign(const std::vector<Instruction*>& order) {
  KILN_CHECK(order.size() == live_);
  for (auto& s : slots_) s.release();
  slots_.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    slots_[k].reset(order[k]);
    order[k]->slot_ = k;
  }
}

void InstructionList::CloseHoles() {
  size_t to = 0;
  for (auto& s : slots_) {
    if (!s) continue;
    s->slot_ = to;
    auto moved = std::move(s);
    slots_[to++] = std::move(moved);
  }
  slots_.resize(to);
}

}  // namespace kiln
