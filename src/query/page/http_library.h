// SPDX-License-Identifier: MIT
/* http_library.h - libmicrohttpd, loaded when the page is served
 *
 * It brings ten more libraries (for TLS, which the page does not use); loading them with the program would make a third of
 * what every other command of tbdq costs before it begins.  Types and constants are those of <microhttpd.h>. */
#ifndef TBD_QUERY_HTTP_LIBRARY_H
#define TBD_QUERY_HTTP_LIBRARY_H

#include <microhttpd.h>
#include <stdbool.h>

/* The functions in use: MHD_NAME is tbd_http()->NAME. */
#define TBD_HTTP_FUNCTIONS(FUNCTION)                                                               \
    FUNCTION(start_daemon)                                                                         \
    FUNCTION(stop_daemon)                                                                          \
    FUNCTION(queue_response)                                                                       \
    FUNCTION(destroy_response)                                                                     \
    FUNCTION(add_response_header)                                                                  \
    FUNCTION(get_connection_info)                                                                  \
    FUNCTION(lookup_connection_value)                                                              \
    FUNCTION(create_response_from_buffer)

#define TBD_HTTP_FIELD(name) __typeof__(MHD_##name) *name;
struct tbd_http {
    TBD_HTTP_FUNCTIONS(TBD_HTTP_FIELD)
};

/* Loads the library; it stays loaded.  False if it is not installed, or lacks a function.  Before any thread asks tbd_http(). */
bool tbd_http_load(void);
const struct tbd_http *tbd_http(void);

#endif
