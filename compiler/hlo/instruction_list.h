// The instructions of a computation, owned, in order.
//
// What: a sequence from which any instruction can be taken out at once. Removal leaves a hole that iteration skips;
//   holes are closed when they are half of the places, so an iteration stays linear in what is left.
// Guarantees: the order of those that stay never changes, except by Assign.
// Cost: Append and Remove amortised O(1). Neither may happen while somebody iterates.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

namespace kiln {

class Instruction;

class InstructionList {
  using Slots = std::vector<std::unique_ptr<Instruction>>;

  template <bool kForward>
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = std::unique_ptr<Instruction>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;
    Iterator() = default;
    Iterator(const Slots* slots, std::ptrdiff_t at) : slots_(slots), at_(at) { Skip(kForward ? 1 : -1); }
    reference operator*() const { return (*slots_)[static_cast<size_t>(at_)]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      at_ += kForward ? 1 : -1;
      Skip(kForward ? 1 : -1);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator& operator--() {
      at_ -= kForward ? 1 : -1;
      Skip(kForward ? -1 : 1);
      return *this;
    }
    bool operator==(const Iterator& o) const { return at_ == o.at_; }
    bool operator!=(const Iterator& o) const { return at_ != o.at_; }

   private:
    void Skip(std::ptrdiff_t step) {
      const auto end = static_cast<std::ptrdiff_t>(slots_->size());
      while (at_ >= 0 && at_ < end && !(*slots_)[static_cast<size_t>(at_)]) at_ += step;
    }
    const Slots* slots_ = nullptr;
    std::ptrdiff_t at_ = 0;
  };

 public:
  using iterator = Iterator<true>;
  using const_iterator = iterator;
  using reverse_iterator = Iterator<false>;

  InstructionList() = default;
  InstructionList(const InstructionList&) = delete;
  ~InstructionList();

  iterator begin() const { return {&slots_, 0}; }
  iterator end() const { return {&slots_, static_cast<std::ptrdiff_t>(slots_.size())}; }
  reverse_iterator rbegin() const { return {&slots_, static_cast<std::ptrdiff_t>(slots_.size()) - 1}; }
  reverse_iterator rend() const { return {&slots_, -1}; }
  size_t size() const { return live_; }
  bool empty() const { return live_ == 0; }
  const std::unique_ptr<Instruction>& front() const { return *begin(); }
  const std::unique_ptr<Instruction>& back() const { return *rbegin(); }

 private:
  friend class Computation;
  void Append(std::unique_ptr<Instruction> instruction);
  // Destroys it.
  void Remove(Instruction* instruction);
  // The same instructions in another order.
  void Assign(const std::vector<Instruction*>& order);
  void CloseHoles();

  Slots slots_;
  size_t live_ = 0;
};

}  // namespace kiln
