// Enums of attributes whose value is one of a few words (attribute_words.def), and their text.
//
//   i->mutable_attrs().direction = Direction::GE;
//   TextOf(Direction::GE)                            "GE"
//   WordFromText<Direction>("GE")                    Direction::GE; an error that lists the words where it is none
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler/base/status.h"

namespace kiln {

#define WORDS(kind, ...)                     \
  enum class kind : uint8_t { __VA_ARGS__ }; \
  constexpr absl::string_view AllWords(kind) { return #__VA_ARGS__; }
#include "compiler/hlo/attribute_words.def"

template <class E>
concept AttributeWord = requires(E e) {
  AllWords(e);
};

namespace words {
// The word number `index` of a list with ", " between them.
absl::string_view At(absl::string_view list, int index);
// The number of `word`; an error "'word' is none of ..." if it is not in the list.
absl::StatusOr<int> IndexOf(absl::string_view list, absl::string_view word);
}  // namespace words

template <AttributeWord E>
absl::string_view TextOf(E e) {
  return words::At(AllWords(e), static_cast<int>(e));
}

template <AttributeWord E>
absl::StatusOr<E> WordFromText(absl::string_view text) {
  ASSIGN_OR_RETURN(const int index, words::IndexOf(AllWords(E()), text));
  return static_cast<E>(index);
}

template <AttributeWord E>
std::string AttrText(E e) {
  return std::string(TextOf(e));
}

// The direction of the same comparison with its operands exchanged.
constexpr Direction Mirrored(Direction d) {
  switch (d) {
    case Direction::LT:
      return Direction::GT;
    case Direction::GT:
      return Direction::LT;
    case Direction::LE:
      return Direction::GE;
    case Direction::GE:
      return Direction::LE;
    case Direction::EQ:
    case Direction::NE:
      break;
  }
  return d;
}

}  // namespace kiln
