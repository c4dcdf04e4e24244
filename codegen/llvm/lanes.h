// Where the lanes of a vector that is gathered or scattered lie in memory.
#pragma once

#include <optional>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace kiln {

// Lane k lies at `base` + `shift` bytes + `first` + `lanes`[k], the last two in units of `unit`.
struct Places {
  llvm::Value* base;
  int64_t shift;
  llvm::Type* unit;
  llvm::Value* first;  // null: 0
  llvm::Value* lanes;  // as narrow as they were computed
  bool is_signed;
};
// Of a vector of addresses; nothing: they are made in another way.
std::optional<Places> PlacesOf(llvm::IRBuilder<>& b, llvm::Value* addresses, const llvm::DataLayout& layout);

// Whether a mask takes every lane.
bool IsAll(const llvm::Value* mask);

// How far each lane of integers is from the one before, where all are as far: those of an induction variable are.
std::optional<int64_t> StepOf(const llvm::Value* lanes);

// The address of lane 0 of places that are a step apart.
llvm::Value* FirstAddress(llvm::IRBuilder<>& b, const Places& places);

// Turns `rows`, a power of 2 of them, whose lanes are blocks of as many: in each block, lane r of row k becomes lane k
// of row r.
void TurnBlocks(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& rows);

}  // namespace kiln
