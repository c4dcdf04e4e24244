#include "compiler/hlo/attribute_words.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace kiln::words {

absl::string_view At(absl::string_view list, int index) {
  for (absl::string_view word : absl::StrSplit(list, ", "))
    if (index-- == 0) return word;
  return "";
}

absl::StatusOr<int> IndexOf(absl::string_view list, absl::string_view word) {
  int index = 0;
  for (absl::string_view w : absl::StrSplit(list, ", ")) {
    if (w == word) return index;
    ++index;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", word, "' is none of ", absl::StrReplaceAll(list, {{", ", " "}})));
}

}  // namespace kiln::words
