// Text protos of users, with the place of what is wrong in them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kiln {

// Fails with "FILE:LINE:COLUMN: error: ..." at the first mistake; `what` names the message for people.
template <typename Message>
absl::StatusOr<Message> ParseTextProto(absl::string_view text, const std::string& file, absl::string_view what) {
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
  if (!parser.ParseFromString(std::string(text), &message))
    return InvalidArgument(file, ":",
                           errors.text.empty() ? absl::StrCat("1:1: error: not a text proto of ", what) : errors.text);
  return message;
}

}  // namespace kiln
