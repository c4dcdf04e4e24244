// Text protos of users, with the place of what is wrong in them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kiln {

// Where the fields of a text proto stand.
class FieldPlaces {
 public:
  explicit FieldPlaces(std::string file) : file_(std::move(file)) {}
  // "FILE:LINE:COLUMN" of a field ("debug.stop_after"), of one element of a repeated one; of the file's beginning if
  // the text does not have it.
  std::string Of(const google::protobuf::Descriptor* message, absl::string_view path, int element = -1) const {
    const google::protobuf::TextFormat::ParseInfoTree* tree = &tree_;
    for (;;) {
      const size_t dot = path.find('.');
      const auto* field = message->FindFieldByName(std::string(path.substr(0, dot)));
      if (dot == absl::string_view::npos) {
        auto at = tree->GetLocation(field, field->is_repeated() ? std::max(element, 0) : -1);
        if (at.line < 0 && element > 0) at = tree->GetLocation(field, 0);  // [a, b] has one place
        return at.line < 0 ? file_ + ":1:1" : absl::StrCat(file_, ":", at.line + 1, ":", at.column + 1);
      }
      tree = tree->GetTreeForNested(field, -1);
      if (!tree) return file_ + ":1:1";
      message = field->message_type();
      path.remove_prefix(dot + 1);
    }
  }
  // The same for a field inside elements of repeated fields: {{"devices", 1}, {"entries", 0}}.
  std::string Of(const google::protobuf::Descriptor* message,
                 const std::vector<std::pair<const char*, int>>& path) const {
    const google::protobuf::TextFormat::ParseInfoTree* tree = &tree_;
    for (size_t k = 0; tree; ++k) {
      const auto* field = message->FindFieldByName(path[k].first);
      if (k + 1 == path.size()) {
        const auto at = tree->GetLocation(field, path[k].second);
        if (at.line >= 0) return absl::StrCat(file_, ":", at.line + 1, ":", at.column + 1);
        break;
      }
      tree = tree->GetTreeForNested(field, path[k].second);
      message = field->message_type();
    }
    return file_ + ":1:1";
  }
  google::protobuf::TextFormat::ParseInfoTree* tree() { return &tree_; }

 private:
  std::string file_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
};

// Fails with "FILE:LINE:COLUMN: error: ..." at the first mistake; `what` names the message for people.
template <typename Message>
absl::StatusOr<Message> ParseTextProto(absl::string_view text, const std::string& file, absl::string_view what,
                                       FieldPlaces* places = nullptr) {
  class FirstError : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
      if (text.empty()) text = absl::StrCat(line + 1, ":", column + 1, ": error: ", message);
    }
    std::string text;
  } errors;
  Message message;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  if (places) parser.WriteLocationsTo(places->tree());
  if (!parser.ParseFromString(std::string(text), &message))
    return InvalidArgument(file, ":",
                           errors.text.empty() ? absl::StrCat("1:1: error: not a text proto of ", what) : errors.text);
  return message;
}

}  // namespace kiln
