// Devices as ranks of MPI, in the generated headers.
#include "aot/package/header_text.h"

namespace kiln {

std::string MpiDeclarations() {
  return R"(
// The devices as ranks of MPI: this process runs the device whose number is its rank. Nothing of MPI is needed to build
// the program; Open MPI 4 (libmpi.so.40, or the file that KILN_MPI names) is opened by the first call.
//
// All ranks call open. It initialises MPI unless the program has, and works on a duplicate of `comm`, an MPI_Comm of the
// program's (NULL: MPI_COMM_WORLD), which needs $DEVICES ranks that run this build. Errors are $UPPER_COMMUNICATION;
// `error`, if given, then says what is wrong (up to 512 bytes). After MPI_Init, which is for one thread, the thread that
// called it opens and runs; others need MPI_THREAD_SERIALIZED, and runs beside other calls of MPI, MPI_THREAD_MULTIPLE.
//
// No wait is longer than the time limit (device_timeout_ms of the config), and a failure on one rank ends the runs of
// all. From then on every run fails; close and open it again on all ranks to go on. MPI may still write into the arrays of
// a run that a rank left in the middle of a message.
struct kiln_mpi;
int32_t $NAME_mpi_open(struct kiln_mpi** mpi, void* comm, char* error, size_t error_bytes) $[mpi_open$];
// Of this rank; NULL if `mpi` is.
kiln_comm* $NAME_mpi_comm(struct kiln_mpi* mpi) $[mpi_comm$];
// Why runs fail, in words: which rank did not come, or failed. Empty if they do not.
const char* $NAME_mpi_error(const struct kiln_mpi* mpi) $[mpi_error$];
// How long a rank waits for another; 0: for ever.
void $NAME_mpi_set_timeout(struct kiln_mpi* mpi, int64_t milliseconds) $[mpi_set_timeout$];
// Says that a channel of the program leads from one rank to another, on all ranks before they run. Channels that nobody
// connects are queues of this process, as infeed and outfeed are. $UPPER_DEVICE: a rank or a channel that there is not.
int32_t $NAME_mpi_connect(struct kiln_mpi* mpi, int64_t channel, int32_t from, int32_t to) $[mpi_connect$];
// Ends this rank's run, and so all runs; may be called by any thread.
void $NAME_mpi_abort(struct kiln_mpi* mpi) $[mpi_abort$];
// All ranks call it: it waits for them, and finalises MPI if open initialised it. A failed one is left at once, and MPI
// not finalised. NULL is nothing.
void $NAME_mpi_close(struct kiln_mpi* mpi) $[mpi_close$];
)";
}

std::string MpiClass() {
  return R"(
  // This process as a rank of MPI ($NAME_c.h says what each function does). All ranks make one, and destroy it.
  class Mpi {
   public:
    // `comm`: an MPI_Comm of the program's, or MPI_COMM_WORLD.
    explicit Mpi(void* comm = nullptr) { code_ = $NAME_mpi_open(&mpi_, comm, error_, sizeof error_); }
    Mpi(const Mpi&) = delete;
    Mpi& operator=(const Mpi&) = delete;
    ~Mpi() { $NAME_mpi_close(mpi_); }
    bool ok() const { return mpi_ != nullptr; }
    Status status() const { return {code_}; }
    // What is wrong: why it is not ok(), or why runs fail.
    const char* error() const { return mpi_ ? $NAME_mpi_error(mpi_) : error_; }
    // For Context::set_comm; the rank is comm()->device. NULL if it is not ok().
    const kiln_comm* comm() const { return $NAME_mpi_comm(mpi_); }
    kiln_mpi* get() const { return mpi_; }

   private:
    kiln_mpi* mpi_ = nullptr;
    std::int32_t code_ = 0;
    char error_[512] = "";
  };
)";
}

}  // namespace kiln
