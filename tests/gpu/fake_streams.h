// The part of the fake CUDA driver that runs things: streams that work when somebody waits for them, events between
// them, recordings, and graphs.
//
// What is put on a stream waits there. It runs when the host waits for the stream, or when a stream that somebody waits
// for awaits an event behind it; everything else stays where it is, so that an order which nobody asked for does not
// come about by chance. One lock serves all of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace fake {

// What work answers that has to be attempted again: it waits for another device.
constexpr int kNotYet = -1;

// Codes of the driver.
enum Code {
  kOk = 0,
  kInvalidValue = 1,
  kNoMemory = 2,
  kInvalidContext = 201,
  kIllegalState = 401,
  kNotReady = 600,
  kMisaligned = 716,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kUpdateFailed = 910
};

struct Graph;
struct Node {
  std::function<int()> work;  // of an ordinary node
  // Of a conditional one: its body runs, or runs again, while the value of `handle` is not 0.
  std::shared_ptr<Graph> body;
  uint64_t handle = 0;
  bool loop = false;
};
struct Graph {
  std::vector<Node> nodes;
};
// A copy that shares nothing: what instantiation makes.
std::shared_ptr<Graph> Copied(const Graph& g);
// What an update makes of an executable: ordinary nodes become those of `with`; conditional ones keep the handle that
// they were made with, whatever those of `with` have. Null: the graphs are of different forms.
std::shared_ptr<Graph> Updated(const Graph& exec, const Graph& with);
// Values of conditional handles: 0 when made, and when a graph that has the handle starts.
uint64_t NewHandle();
void SetHandle(uint64_t handle, unsigned value);

// How far a stream had come when an event was recorded.
struct Point {
  struct Stream* stream = nullptr;
  bool reached = false;
  Graph* recorded_in = nullptr;
  int64_t recorded = 0;  // work that the stream had put into that
};

struct Op {
  std::function<int()> work;      // null: a mark, or a graph
  std::shared_ptr<Point> awaits;  // before the work
  std::shared_ptr<Point> reaches;
  std::shared_ptr<Graph> graph;       // that starts here
  std::shared_ptr<Node> conditional;  // of a graph that runs
};

struct Stream {
  int number = -1;  // -1: the default stream
  bool blocking = true;
  std::deque<Op> queue;
  Graph* recording = nullptr;
  bool into_body = false;  // of a conditional node
  int mode = 0;
  bool spoiled = false;  // the recording
  int device = 0;
  // Of a stream that joined another one's recording: what it put there, and how much of it the others wait for.
  bool joined = false;
  int64_t recorded = 0, awaited = 0;
};

extern std::recursive_mutex lock;
// Of the calling thread's context; -1: it has none.
int CurrentDevice();
// The stream of a handle: null and 1 are the default stream, 2 that of a thread.
Stream* Of(void* handle);
Stream* NewStream(bool blocking);
void DestroyStream(Stream* s);

// An error that everything returns from now on, as after a fault of a kernel; 0: none.
int Sticky();
void SetSticky(int code);
// Forgets streams and errors.
void Reset();

// Puts work on a stream, or into its recording.
int Do(Stream* s, std::function<int()> work);
int DoNode(Stream* s, Node node);
int DoGraph(Stream* s, std::shared_ptr<Graph> graph);
// Runs what is on the stream, and what that awaits.
int Drain(Stream* s);
// The same as far as nothing waits for another device; kNotReady: something does.
int TryDrain(Stream* s);
int DrainAll();
bool SomebodyRecords();
bool DeviceRecorded(int device);
// Streams that joined a recording leave it with the one that it began on; kCaptureUnjoined: nobody waits for one.
int EndJoined(Graph* g);
// Waiting for a stream that is recorded spoils the recording.
int Wait(Stream* s);
// A call that may wait by itself (memory, modules): not while somebody records who did not allow it.
int Unsafe();
// The mode of the calling thread's calls while streams are recorded.
int ExchangeMode(int mode);

struct Event {
  std::shared_ptr<Point> point;
};
int Record(Event* e, Stream* s);
int Await(Stream* s, const Event& e);

}  // namespace fake
