// SPDX-License-Identifier: MIT
/* captured.c - see captured.h */
#include "query/serve/captured.h"

#include "query/prompt/command_line.h"

#include "base/safe_stream.h"

#include <stdlib.h>
#include <string.h>

static void close_all(struct tbd_capture *capture)
{
    FILE *const files[] = { capture->out, capture->err, capture->raw_out, capture->raw_err };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] != NULL)
            fclose(files[i]);
}

bool tbd_capture_begin(struct tbd_capture *capture)
{
    *capture = (struct tbd_capture){ .before = stderr };
    capture->raw_out = open_memstream(&capture->captured.out, &capture->out_bytes);
    capture->raw_err = open_memstream(&capture->captured.err, &capture->err_bytes);
    if (capture->raw_out != NULL)
        capture->out = tbd_safe_stream(capture->raw_out);
    if (capture->raw_err != NULL)
        capture->err = tbd_safe_stream(capture->raw_err);
    if (capture->out == NULL || capture->err == NULL) {
        close_all(capture);
        tbd_captured_free(&capture->captured);
        return false;
    }
    stderr = capture->err;
    return true;
}

void tbd_capture_end(struct tbd_capture *capture, struct tbd_captured *out)
{
    stderr = capture->before;
    close_all(capture);
    *out = capture->captured;
}

void tbd_captured_run(struct tbd_session *session, const char *line, struct tbd_captured *out)
{
    struct tbd_capture capture;
    enum tbd_exit result;

    *out = (struct tbd_captured){ .result = TBD_EXIT_SYSTEM };
    if (!tbd_capture_begin(&capture))
        return;
    result = tbd_line_run(session, &(struct tbd_line_options){ .out = capture.out, .quiet = true },
                          line);
    tbd_capture_end(&capture, out);
    out->result = result;
}

void tbd_captured_free(struct tbd_captured *captured)
{
    free(captured->out);
    free(captured->err);
    captured->out = captured->err = NULL;
}

char *tbd_captured_why(const struct tbd_captured *captured, char *out, size_t bytes)
{
    static const char name[] = "tbdq: ";
    const char *text = captured->err != NULL && *captured->err != '\0'   ? captured->err
                       : captured->out != NULL && *captured->out != '\0' ? captured->out
                                                                         : "there is no memory";

    if (strncmp(text, name, strlen(name)) == 0)
        text += strlen(name);
    snprintf(out, bytes, "%.*s", (int)strcspn(text, "\n"), text);
    return out;
}
