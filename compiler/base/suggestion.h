// What was probably meant by a word that is not known.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// "; did you mean X?" for the word that is nearest; empty if none is near.
std::string Suggestion(const std::string& word, const std::vector<std::string>& words, const char* prefix = "");

}  // namespace kiln
