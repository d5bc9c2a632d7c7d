// SPDX-License-Identifier: MIT
/* file_writes.h - the writes whose bytes a read from a file has read, in this process or in another one
 *
 * Where a call read or wrote follows from its argument, or from the calls through the same open file before it: open,
 * lseek, reads, writes.  What was written last before the read is what it has read; what comes before what is known within a
 * process, from fork and wait, and from the wall-clock times of both traces.  Where that leaves several
 * writes, the bytes decide.  They are compared in any case, because others may write the file. */
#ifndef TBD_QUERY_FILE_WRITES_H
#define TBD_QUERY_FILE_WRITES_H

#include "query/channels/channels_private.h"

/* Where bytes [offset, offset + bytes) of the read come from. TBD_OK with neither pieces nor a refusal: from before
 * the recording, as far as is known. */
TBD_MUST_CHECK enum tbd_status tbd_file_writes_find(struct tbd_channels *channels,
                                                    const struct tbd_fd_file_call *read,
                                                    uint64_t offset, uint64_t bytes,
                                                    struct tbd_channel_answer *out);

#endif
