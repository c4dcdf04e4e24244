// What a run of a program was measured to take, operation by operation: the source of `kiln profile`'s reports.
//
// Times are microseconds, of one run; work is what the cost analysis says; the roofline is the time that this machine's
// measured peaks allow at best.
#pragma once

#include <string>
#include <vector>

#include "aot/debug/program_op.h"

namespace kiln {

struct Peaks {
  double gflops = 0, gbytes = 0;  // a second: multiply-adds of f32, and bytes read and written by a copy
};

struct Profile {
  struct Row {
    ProgramOp op;
    double calls = 0;      // a run
    double us = 0;         // what is nested included
    double self_us = 0;    // without that
    double thread_us = 0;  // of all threads together
  };
  struct Event {
    size_t row;
    int64_t thread;  // from 0
    double begin, us;
    bool part;  // what one thread did of it
  };

  std::string title;
  int threads = 1, repeat = 1;
  double median_us = 0;  // of a whole run
  Peaks peaks;
  std::vector<Row> rows;      // in the order of the program
  std::vector<Event> events;  // of the last run
};

// Of the attainable speed, 1 at best; 0 where nothing is known of the work.
double RooflineShare(const Profile& profile, const Profile::Row& row);

std::string ProfileInText(const Profile& profile);
std::string ProfileInHtml(const Profile& profile);
std::string ProfileInJson(const Profile& profile);

}  // namespace kiln
