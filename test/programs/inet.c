// SPDX-License-Identifier: MIT
/* A TCP and a UDP conversation with itself over the loopback; getaddrinfo of numbers. */
#include "check.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, peer;
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *found = NULL;
    socklen_t length = sizeof(name), peer_length = sizeof(peer), option_length = sizeof(int);
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted, option = 1;
    unsigned long total = 0;
    char buffer[5000], text[40];

    CHECK(bind(server, (struct sockaddr *)&name, length) == 0 && listen(server, 4) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&name, &length) == 0 && name.sin_port != 0);
    CHECK(connect(client, (struct sockaddr *)&name, length) == 0);
    accepted = accept(server, (struct sockaddr *)&peer, &peer_length);
    CHECK(accepted >= 0 && peer_length == sizeof(peer) && peer.sin_family == AF_INET);
    CHECK(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &option, sizeof(option)) == 0);
    option = 0;
    CHECK(getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &option, &option_length) == 0 && option != 0);
    for (int i = 0; i < 40; i++) {
        memset(buffer, i, sizeof(buffer));
        CHECK(send(client, buffer, sizeof(buffer), 0) == sizeof(buffer));
        memset(buffer, 0, sizeof(buffer));
        CHECK(recv(accepted, buffer, sizeof(buffer), MSG_WAITALL) == sizeof(buffer));
        total += (unsigned char)buffer[4999];
    }
    CHECK(shutdown(client, SHUT_WR) == 0 && read(accepted, buffer, 10) == 0 && total == 780);
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0 && found != NULL);
    CHECK(getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0);
    freeaddrinfo(found);
    printf("%lu %s\n", total, text);
    return 0;
}
