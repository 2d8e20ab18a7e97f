/* inside.h -- what the files of the transport over TCP and Unix sockets share.
 *
 * A transport has one lock and one libuv loop. The thread that holds the lock
 * may do anything. That is the owner's thread while it waits or sends.
 * Otherwise it is a thread of the transport, the keeper, which takes over when
 * the owner has been away for a moment (loop.c).
 *
 * The transport owns links, channels and arrivals. Everything except a few
 * flags of the keeper is read and written under the lock. A comment says so if
 * a function of this header takes the lock. */
#ifndef KF_NET_INSIDE_H
#define KF_NET_INSIDE_H

#include <kofn/net.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/lent.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <uv.h>

#define KF_MILLI INT64_C(1000000)

/* ---- on the wire ------------------------------------------------------------
 *
 * A connection carries frames: a header of 16 bytes, a head, and bytes of a
 * body.
 *
 *     at  bytes
 *      0    1    kind, a kf_word
 *      1    1    channel: 0 bulk, 1 urgent
 *      2    2    bytes of the head
 *      4    4    bytes of the body in this frame
 *      8    8    PACKET, FILE: total bytes of the body; CREDIT: the limit of
 *                what may be sent since the connection was made
 *
 * Numbers are little-endian. The end that connects sends HELLO. The other
 * answers WELCOME, or GO if it refuses the connection. The head of these frames
 * is a kf_greeting.
 *
 * A PACKET begins a packet, and DATA continues its body. Each channel carries
 * one packet at a time. A packet costs the bytes of its body and KF_COST. The
 * cost sent in a channel may not exceed the CREDIT that the other end has
 * given. That is its window at first, and grows by what its owner has taken.
 *
 * A body that is longer than the remaining credit is announced: its PACKET has
 * no bytes of the body. The body follows when there is credit for all of it; if
 * SKIP comes instead, it is not sent.
 *
 * BEAT is a single byte, a sign of life. Between processes of one machine a
 * memory file may replace the body of a PACKET that has no bytes of it. FILE
 * brings its descriptor (share.c). */
#define KF_HEADER 16
#define KF_COST 320
#define KF_CHUNK ((size_t)256 << 10) /* bytes of a body in a frame, at most */
#define KF_NODE 16
#define KF_NAME 256 /* of the name of a key */
#define KF_DATE 40  /* of a date in words */

typedef enum kf_word {
    KF_HELLO = 'H',
    KF_WELCOME = 'W',
    KF_GO = 'G',
    KF_BEAT = 'B',
    KF_PACKET = 'P',
    KF_DATA = 'D',
    KF_CREDIT = 'C',
    KF_SKIP = 'S',
    KF_FILE = 'F'
} kf_word;

#define KF_MAGIC "kofnet04" /* includes the version */
#define KF_TAKES_FILES 1
#define KF_LISTENS 112 /* bytes; a path of a Unix socket has at most 107 */

typedef struct kf_greeting {
    char magic[8];
    unsigned char node[KF_NODE]; /* the sender; zero outside a mesh */
    /* nanoseconds without a sign of life until a peer is lost */
    unsigned char silence[8];
    unsigned char window[8]; /* first credit of the bulk channel, in bytes */
    unsigned char urgent[8]; /* first credit of the urgent channel, in bytes */
    unsigned char takes[8];  /* KF_TAKES_FILES, or 0 */
    /* Address of a mesh node, padded with zeros: the port at which it listens,
     * or the path of its Unix socket. All zero: not reported. */
    char listens[KF_LISTENS];
} kf_greeting;

enum { KF_BULK, KF_URGENT, KF_CHANNELS };

/* ---- packets ------------------------------------------------------------- */

typedef struct kf_share kf_share;

#define KF_PASSED 253 /* descriptors that Linux passes at once, at most */

/* Space for descriptors that come with the bytes of a Unix socket. The system
 * closes descriptors for which there is no space, and that close may wait. */
typedef union kf_passing {
    struct cmsghdr head;
    char room[CMSG_SPACE(KF_PASSED * sizeof(int))];
} kf_passing;

/* A packet that is to be sent; its body is lent. */
typedef struct kf_departure {
    struct kf_departure *next;
    kofn_lent body;
    size_t at, head_bytes; /* at: bytes of the body already sent */
    bool begun;            /* its PACKET has been sent */
    kf_share *share;       /* NULL: the body is not shared */
    unsigned char head[KOFN_HEAD_MAX];
} kf_departure;

typedef struct kf_link kf_link;
typedef struct kf_tray kf_tray;
typedef struct kf_account kf_account;

/* A received packet, complete or not; or the arrival or loss of a peer. */
typedef struct kf_arrival {
    struct kf_arrival *next;
    /* NULL: the link is gone; set again when the packet is taken */
    kf_link *from;
    kofn_arrival what;
    kofn_peer peer;
    size_t head_bytes, bytes, at;
    size_t room;                 /* bytes of memory after the struct */
    bool urgent, asked, skipped; /* skipped: its body is not sent */
    size_t mapped;               /* bytes of the memory file mapped at `body` */
    kofn_time since;             /* when its head arrived */
    unsigned char head[KOFN_HEAD_MAX];
    unsigned char *body; /* NULL: it has none, or it is not wanted */
} kf_arrival;

typedef struct kf_arrivals {
    kf_arrival *first, **last;
} kf_arrivals;

/* An element of a queue of accounts, or of trays, which take turns. */
typedef struct kf_queued {
    struct kf_queued *next;
    void *of;
    bool waits; /* it is in the queue */
} kf_queued;

typedef struct kf_queue {
    kf_queued *first, **last;
} kf_queue;

/* ---- connections --------------------------------------------------------- */

typedef enum kf_link_state {
    KF_DIALLING, /* the system connects */
    KF_REFUSED,  /* a stranger that was sent the reason */
    KF_SHAKING,  /* TLS handshake */
    KF_STRANGE,  /* its greeting has not come */
    KF_HELD,     /* mesh: admitted after a moment, or when no dial is left */
    KF_PEER,     /* reported as a peer */
    KF_PARTING,  /* the last bytes are being sent */
    KF_OVER      /* until libuv has released it */
} kf_link_state;

/* The traffic of one channel. */
typedef struct kf_channel {
    kf_departure *first, **last; /* packets to be sent */
    size_t queued;               /* cost of the packets to be sent */
    uint64_t sent, may; /* cost sent, and limit of that cost, since the start */
    kf_arrival *coming; /* the packet that is being received */
    uint64_t got;       /* cost received since the start */
    uint64_t taken, given; /* cost taken by the owner; credit given */
    uint64_t special;      /* credit that was given for a long body */
    size_t window;
    bool asks; /* `coming` costs more than the window: ask if it is wanted */
} kf_channel;

struct kf_transport;
struct kf_dial;
struct kf_keys;
struct ssl_st;

/* Flags: OpenSSL waits to write before it can read, or to read before it can
 * write. */
enum { KF_READS_WAIT = 1, KF_WRITES_WAIT = 2 };

#define KF_BUNDLE                                                              \
    ((size_t)264 << 10) /* bytes: sixteen records of full length */

/* Records sent under one key. AES-GCM allows 2^24.5 records of full length (RFC
 * 8446, 5.5). */
#define KF_REKEY (1u << 23)

/* TLS records that are sent by one system call. A link has one while it writes,
 * and until the system has taken all of it. */
typedef struct kf_bundle {
    size_t at, end; /* range of the bytes still to be sent */
    unsigned char bytes[KF_BUNDLE];
} kf_bundle;

/* The signs of life of a connection. */
typedef struct kf_life {
    kofn_time since, heard, spoke; /* values of transport.awake */
    kofn_time busy;  /* when more than a beat last came; by transport.awake */
    bool calm;       /* a beat alone does not wake the loop */
    kofn_time beat;  /* longest pause between signs of life sent to it */
    kofn_time until; /* KF_PARTING: when it is ended */
} kf_life;

/* The received part of a frame. */
typedef struct kf_frame_in {
    /* received part of a frame's header and head */
    unsigned char part[KF_HEADER + KOFN_HEAD_MAX];
    size_t have;
    size_t left; /* bytes of a body still to come in this frame */
    int into;    /* channel of that body */
} kf_frame_in;

/* The frame that is being sent, and what follows it. */
typedef struct kf_frame_out {
    /* header and head being sent */
    unsigned char frame[KF_HEADER + KOFN_HEAD_MAX];
    size_t bytes, at;
    const char *body; /* bytes of the body of `sending` in the frame */
    size_t body_bytes;
    int channel; /* channel of the frame, or -1 */
    /* its descriptor is sent with the frame; NULL: none */
    const kf_share *with;
    unsigned words; /* greetings and beats to be sent; a bit each, see send.c */
    unsigned skips; /* channels in which a SKIP is to be sent; a bit each */
} kf_frame_out;

/* What may still come and go. */
typedef struct kf_link_flags {
    bool deaf;      /* the other end has closed */
    bool mum;       /* nothing more is sent */
    bool forgotten; /* nothing more is read */
    bool blocked;   /* waits until the socket takes more */
    bool unix_socket;
    bool local;  /* descriptors may be received */
    bool shares; /* descriptors may be sent */
    int passed;  /* a received descriptor, or -1 */
} kf_link_flags;

/* The state of TLS on a connection. */
typedef struct kf_secure {
    struct ssl_st *tls; /* NULL: no keys, or nothing was received */
    /* bytes received before the handshake ended, or after a refusal */
    size_t shaken;
    /* record of a stranger that OpenSSL has not read, or NULL */
    unsigned char *record;
    size_t record_have; /* bytes of it received */
    size_t record_at;   /* bytes of it read by OpenSSL */
    /* KF_READS_WAIT: reads wait until the socket is writable; KF_WRITES_WAIT:
     * the reverse */
    unsigned waits;
    /* what stopped OpenSSL last: 'r' no bytes to read, 'w' no room to write,
     * 'e' end of the connection */
    char wants;
    bool again;        /* OpenSSL holds bytes that were not read */
    unsigned records;  /* records sent */
    kf_bundle *bundle; /* NULL: the system has all that was encrypted */
} kf_secure;

struct kf_link {
    struct kf_transport *t;
    kf_link *before, *after; /* list of the transport's links */
    struct kf_dial *dial;    /* NULL: the other end connected */
    uv_poll_t poll;
    uv_poll_cb ready; /* called when `fd` is ready */
    int fd;
    kf_link_state state;
    kofn_peer number;
    kf_tray *tray; /* NULL: it is no peer */
    unsigned char node[KF_NODE];
    kf_channel channel[KF_CHANNELS];
    char name[KF_NAME + 144], principal[KF_NAME];
    kf_life life;
    kf_frame_in in;
    kf_frame_out out;
    kf_link_flags flag;
    kf_secure secure;
};

/* ---- dials: connections that are made again after every loss ------------- */

typedef struct kf_dial {
    struct kf_transport *t;
    char *address;
    char who[KF_NAME]; /* name of the expected key; "": the only expected one */
    char met[KF_NAME]; /* name of an unexpected key that was met, or "" */
    char begins[KF_DATE]; /* when the certificate that was met begins to be
                             valid, if it is not yet; else "" */
    kf_link *link; /* NULL: between two connections, or during a lookup */
    bool welcome, over, looking;
    bool admitted; /* it was welcome once */
    bool lost;     /* the link is lost; the next step is pending */
    unsigned char node[KF_NODE]; /* mesh: the node that last answered there */
    kofn_time pause, next;
    uv_getaddrinfo_t look;
    struct addrinfo *found, *at; /* found: addresses; at: the next to try */
} kf_dial;

/* ---- the transport ------------------------------------------------------- */

/* Numbers of connections that were ended, by reason. */
typedef struct kf_refused {
    uint64_t strange;      /* lost before they were peers */
    uint64_t full;         /* few descriptors are left */
    uint64_t crowd;        /* too many strangers */
    uint64_t flood;        /* received bytes that are not allowed */
    uint64_t unresponsive; /* no greeting in time */
    uint64_t keyless;      /* no listed key */
} kf_refused;

#define KF_SPARE 8 /* The loop of libuv and its handles. */
typedef struct kf_handles {
    uv_loop_t loop;
    bool looping; /* `loop` was made */
    uv_timer_t tick;
    uv_poll_t door;
    bool open;       /* `door` was made */
    uv_timer_t look; /* timer: checks the list of keys */
    uv_timer_t
        dialing; /* timer of the next dial, if it is due before the next tick */
    uv_idle_t again; /* OpenSSL holds bytes that were not read */
    uv_async_t kick; /* wakes the keeper */
} kf_handles;

/* What listens for connections, and those that are not peers yet. */
typedef struct kf_gate {
    /* file descriptors; `spare` is closed to accept and refuse one more
     * connection */
    int listening, spare;
    size_t strangers, strangers_most;
    kf_refused refused, known;
    kofn_time reported_at;
    ino_t file; /* inode of the Unix socket */
} kf_gate;

/* The dials of a transport. */
typedef struct kf_dials {
    kf_dial **dial;
    size_t count, cap;
    bool redial; /* a dial has lost its link */
} kf_dials;

/* The links, and those that are peers. */
typedef struct kf_peers {
    kf_link *links;
    kf_link **peer; /* links that are peers, by number */
    size_t count, cap;
    kofn_peer next;
} kf_peers;

/* Packets that wait for their connection, and bodies that were sent. */
typedef struct kf_traffic {
    kf_queue waiting[KF_CHANNELS]; /* accounts that have packets */
    unsigned hurry;                /* urgent packets taken in a row */
    kf_account *accounts;
    kf_tray *ended; /* trays of connections that are over */
    size_t asking;  /* channels with `asks` set */
    /* ended; `done` is to be called without the lock */
    kf_departure *finished;
    /* finished departures; other peers may still use the body */
    kf_departure *lingering;
    kf_share *shares;
    kf_arrival *kept[KF_SPARE];
} kf_traffic;

/* The thread that acts while the owner is away (loop.c). */
typedef struct kf_keeper {
    /* loop.c */
    pthread_t thread;
    pthread_cond_t wake;
    bool started; /* the keeper was started */
    bool here;    /* the owner's thread waits */
    bool asleep, ending;
    uint64_t turns; /* number of the owner's waits */
    kofn_time left, passed;
    kf_link *latest; /* the link that was read last, or NULL */
    int ready;       /* descriptor that alone ended the last sleep, or -1 */
    /* awake: running time, without long interruptions */
    kofn_time ticked, awake;
} kf_keeper;

/* Texts for the caller. */
typedef struct kf_net_text {
    /* the last stranger that was refused for its key: the name of a revoked
     * key, or "", and the words about it */
    char revoked[KF_NAME], keyless[340];
    char endpoint[160], trouble[2 * KF_NAME + 344], words[KF_NAME + 144];
    char asked[2 * KF_NAME + 344]; /* copy of `trouble` for the caller */
} kf_net_text;

/* Bytes that were read. */
typedef struct kf_net_bytes {
    unsigned char
        staging[64 << 10]; /* bytes that were read, before they are sorted */
    unsigned char record[16 << 10]; /* plaintext of a record */
} kf_net_bytes;

/* free buffers kept for the next bodies */

typedef struct kf_transport {
    kofn_transport base;
    pthread_mutex_t lock;
    bool mesh, insecure;
    struct kf_keys *keys; /* NULL: no encryption */
    int shakes;           /* handshake steps in this pass */
    kf_bundle *bundle;    /* buffer for the next link, or NULL */
    unsigned char node[KF_NODE];
    size_t peer_bytes;
    unsigned starved; /* failures for lack of memory, in a row */
    kofn_time silence;
    kofn_time patience; /* a silent peer is lost after this time */
    bool dirty;         /* the loop must update what it waits for */
    bool full;          /* KOFN_AGAIN was returned since the last wait */
    bool room;          /* and there is room now */
    kf_handles uv;
    kf_gate gate;
    kf_dials out;
    kf_peers in;
    kf_traffic traffic;
    kf_keeper keep;
    kf_net_text text;
    kf_net_bytes bytes;
} kf_transport;

/* ---- low.c --------------------------------------------------------------- */

/* The free ones of descriptors 0, 1 and 2, filled with /dev/null. */
typedef struct kf_low {
    int fd[3], count;
} kf_low;

/* Around a call that opens a descriptor; kf_low_end moves it above 2 if
 * needed. */
void kf_low_begin(void);
int kf_low_end(int fd);
/* Around calls that open descriptors which cannot be moved. */
void kf_low_fill(kf_low *low);
void kf_low_empty(kf_low *low);
/* Closes a descriptor that a peer has passed, without waiting for the close. */
void kf_low_discard(int fd);

/* ---- loop.c -------------------------------------------------------------- */

kofn_status kf_net_loop_open(kf_transport *t);
/* Starts the keeper, which runs the loop while the owner is away. */
kofn_status kf_net_loop_keep(kf_transport *t);
void kf_net_loop_close(kf_transport *t);
/* Runs the loop without waiting. */
void kf_net_loop_pass(kf_transport *t);
/* Unlocks, and calls the pending `done` functions without the lock. */
void kf_net_loop_unlock(kf_transport *t);
/* Ends the loan of bodies that were lent for several peers. */
void kf_net_loop_release(kf_transport *t);
/* Waits until all connections are over, or until `until`, then unlocks.
 * Arrivals are not reported. */
void kf_net_loop_linger(kf_transport *t, kofn_time until);
kofn_status kf_net_loop_wait(kofn_transport *base, kofn_time atmost,
                             kofn_packet *p);

/* ---- link.c -------------------------------------------------------------- */

/* Makes a link of `fd`, which is connected or about to be. The link owns fd
 * from now on, also on failure. */
kofn_status kf_link_new(kf_link **out, kf_transport *t, int fd,
                        kf_link_state state, uv_poll_cb ready);
/* Ends a link. Reports the loss if it was a peer. */
void kf_link_end(kf_link *l);
/* Ends the oldest stranger if there are `most` of them at least, and counts it
 * in *why. shake: only among strangers that OpenSSL shakes hands with. So an
 * idle stranger keeps no other out. */
void kf_link_make_room(kf_transport *t, bool shake, size_t most, uint64_t *why);
/* Ends a stranger that was sent a reason, as soon as it has read it. */
void kf_link_refuse(kf_link *l);
/* Like writev and readv, but never wait. -1 with EAGAIN: not now. */
ssize_t kf_link_write(kf_link *l, struct iovec *part, int parts);
ssize_t kf_link_read(kf_link *l, struct iovec *part, int parts);
/* Updates what the loop waits for. */
void kf_link_watch(kf_link *l);
/* calm: the loop wakes up only if more bytes than a heartbeat have arrived
 * (SO_RCVLOWAT).  It does nothing under TLS and on Unix sockets. */
void kf_link_calm(kf_link *l, bool calm);
/* Checks whether anything arrived on a calm link. */
void kf_link_listen(kf_link *l);
/* Returns the peer of this number if packets can be sent to it, else NULL.
 * kf_link_unlist removes it from the list. */
kf_link *kf_link_of(const kf_transport *t, kofn_peer number);
void kf_link_unlist(kf_link *l);

/* ---- packets.c ----------------------------------------------------------- */

/* Allocates a packet with room for a body, which begins at a multiple of 64
 * bytes. */
kf_arrival *kf_packets_new(kf_transport *t, size_t bytes);
void kf_packets_free(kf_transport *t, kf_arrival *in);
/* Opens the tray of a link that becomes a peer, and queues the report of its
 * arrival. False: out of memory. */
bool kf_packets_open(kf_link *l);
/* Appends a packet to those of the link that wait. */
void kf_packets_append(kf_link *l, kf_arrival *in);
/* Returns the next packet, or NULL. Accounts take turns, and so do the trays of
 * an account. An urgent packet comes first, but not before the arrival of its
 * peer. */
kf_arrival *kf_packets_next(kf_transport *t);
/* Ends the tray of a link that is over. Its packets and then its loss can still
 * be taken, unless too many packets of its account wait. */
void kf_packets_close(kf_link *l);
/* Drops the packets of a peer and the report of its loss. */
void kf_packets_drop(kf_transport *t, kf_tray *b);
/* Returns the tray of a peer that is gone, or NULL. */
kf_tray *kf_packets_ended(const kf_transport *t, kofn_peer peer);
/* Frees all waiting packets. */
void kf_packets_end(kf_transport *t);
/* Ends the first packet of a channel. */
void kf_packets_sent(kf_transport *t, kf_channel *a);
/* Drops all packets of the link that are being sent or received. */
void kf_packets_clear(kf_link *l);

/* ---- send.c -------------------------------------------------------------- */

/* Writes what the socket takes. */
void kf_net_send_on(kf_link *l);
void kf_net_send_word(kf_link *l, kf_word word);
bool kf_net_send_idle(const kf_link *l);
/* Ends the link when all has been sent, or at `until`. */
void kf_net_send_last(kf_link *l, kofn_time until);
/* Queues a packet. KOFN_AGAIN: the channel is full; otherwise the link owns the
 * packet. */
kofn_status kf_net_send_packet(kf_link *l, kf_departure *o, bool urgent);
kf_greeting kf_net_send_greeting(const kf_transport *t);
void kf_net_put_number(unsigned char *at, uint64_t n, int bytes);
uint64_t kf_net_number(const unsigned char *at, int bytes);

/* ---- share.c ------------------------------------------------------------- */

/* Counts one more loan of a body. NULL: the body is short, or there is no
 * memory. */
kf_share *kf_share_join(kf_transport *t, const void *body, size_t bytes);
void kf_share_leave(kf_transport *t, kf_share *s);
/* Writes all bytes to a file; false, with errno, if it fails. */
bool kf_share_write(int fd, const char *bytes, size_t n);
/* True if there is a file of the body; false: send its bytes. */
bool kf_share_filed(kf_transport *t, kf_share *s);
/* Adds the descriptor to the message. */
void kf_share_attach(struct msghdr *m, kf_passing *room, const kf_share *s);
/* Puts a received descriptor into *fd. False if *fd had one already, or if one
 * was lost because this process may have no more. */
bool kf_share_detach(struct msghdr *m, int *fd);
/* Closes the descriptors in a Unix socket that were not read. */
void kf_share_drain(int fd);
/* Maps the file, which must have this size, and closes the descriptor. NULL: it
 * is not a sealed memory file of that size. */
void *kf_share_map(int fd, size_t bytes);

/* ---- receive.c ----------------------------------------------------------- */

/* Continues the handshake, or receives what came and sends what waits. */
void kf_net_ready(uv_poll_t *poll, int status, int events);
/* Fills in the next arrival; false: there is none. */
bool kf_net_receive_next(kf_transport *t, kofn_packet *p);
/* Asks the owner if announced bodies are wanted. Called on the owner's
 * thread. */
void kf_net_receive_ask(kf_transport *t);
/* Resumes after other links had their turn, if OpenSSL holds bytes that the
 * system no longer reports. */
void kf_net_receive_rest(kf_link *l);

/* ---- join.c -------------------------------------------------------------- */

/* Reads the keys again and ends the links of keys that are no longer listed. */
void kf_join_look(uv_timer_t *timer);
/* Handles a greeting of the other end; false: it cannot be a peer. */
bool kf_join_greeting(kf_link *l, kf_word word, const kf_greeting *g);
/* Admits held links that have waited long enough. */
void kf_join_held(kf_transport *t);
/* Reads nothing more from a peer, and does not report its loss. */
void kf_join_forget(kf_link *l);

/* ---- dial.c -------------------------------------------------------------- */

/* Makes a dial and starts it. The last argument is the name of the key that is
 * expected there, or "". */
kofn_status kf_dial_new(kf_transport *t, const char *address, const char *who);
/* Starts the dials that are due. */
void kf_dial_due(kf_transport *t, kofn_time now);
/* Dials again if links were lost. */
void kf_dial_again(kf_transport *t);
void kf_dial_free(kf_dial *d);

/* ---- listen.c ------------------------------------------------------------ */

kofn_status kf_listen(kf_transport *t, const char *address);
void kf_listen_end(kf_transport *t);

/* ---- tls.c --------------------------------------------------------------- */

bool kf_tls_new(kf_link *l);
/* Gathers a record of a stranger. 1: it is complete; 0: it waits; -1: it is
 * invalid or the connection is lost. */
int kf_tls_gather(kf_link *l);
/* Writes the reason of a failed connection to `trouble`. Also used just after a
 * handshake, since the other end may refuse the key only then. */
void kf_tls_say_why(const kf_link *l);
/* Like kf_link_write, with two parts, and kf_link_read. They may change what
 * the link waits for. */
ssize_t kf_tls_write(kf_link *l, const struct iovec part[2]);
ssize_t kf_tls_read(kf_link *l, struct iovec *part, int parts);
/* Sends what is encrypted; false, with errno: some is left. */
bool kf_tls_flush(kf_link *l);
/* True if OpenSSL holds bytes that were not read. */
bool kf_tls_holds(const kf_link *l);
/* Sends the end of the stream. */
void kf_tls_bye(kf_link *l);
void kf_tls_free(kf_link *l);

/* ---- shake.c ------------------------------------------------------------- */

/* Continues the handshake; the link may be over afterwards. */
void kf_shake(kf_link *l);
/* Returns the number of strangers that OpenSSL shakes hands with at a time. */
size_t kf_shake_most(const kf_transport *t);

/* ---- keys.c -------------------------------------------------------------- */

/* Reads the keys, if there are any. */
kofn_status kf_keys_open(kf_transport *t, bool listens, bool dials,
                         const kofn_net_options *o);
void kf_keys_free(struct kf_keys *k);
/* True if the keys must be checked every second. */
bool kf_keys_may_change(const struct kf_keys *k);
/* Reads files that have changed; true if the list of keys is another now. New
 * files of a CA are for later connections. If they do not match each other, the
 * former ones stay in use. */
bool kf_keys_renew(struct kf_keys *k);
/* Writes the name of the other end's key; false if the key is not listed. */
bool kf_keys_name(const kf_link *l, char name[KF_NAME]);
/* True if the peer's key is no longer listed, or now has another name. */
bool kf_keys_revoked(const kf_link *l);
/* Writes what is wrong with keys that were to be renewed; false if there is
 * nothing new. At most once a minute. */
bool kf_keys_news(struct kf_keys *k, char *words, size_t room);
/* Splits NAME@ADDRESS into the address and the name of the expected key, "" if
 * there is none. Fails if no key has that name. */
kofn_status kf_keys_expect(const kf_transport *t, const char **address,
                           char who[KF_NAME]);

/* ---- place.c ------------------------------------------------------------- */

typedef struct kf_place {
    struct sockaddr_storage at;
    socklen_t bytes;
} kf_place;

/* Checks that this is an address to listen at, or to connect to. anywhere:
 * other machines may reach it. */
kofn_status kf_place_check(const char *address, bool listens, bool anywhere);
/* Returns advice for an error of listening. */
const char *kf_place_advice(int error);
/* Finds the place to listen at. any_v6: use that of IPv6 for all interfaces. */
kofn_status kf_place_here(const char *address, bool any_v6, kf_place *out);
/* True if it is an address for all interfaces of the machine. */
bool kf_place_everywhere(const char *address);
/* Finds the place to connect to. KOFN_AGAIN: the host must be looked up. host:
 * room for 256 bytes. */
kofn_status kf_place_there(const char *address, kf_place *out, char *host,
                           const char **port);
/* Fails if a Unix socket of this path is in use, or if there is another
 * file. */
kofn_status kf_place_vacant(const char *address);
/* Writes an address as text. */
void kf_place_text(const struct sockaddr *at, char *out, size_t room);
/* Writes the principal of a connection without a key: its host or its user. */
void kf_place_principal(int fd, char *out, size_t room);
/* Writes the port of the endpoint, or the path of its Unix socket, and zeros.
 * Writes only zeros if that is too long. */
void kf_place_listens(const char *endpoint, char out[KF_LISTENS]);
/* Replaces the name of a connection, HOST:PORT, by the address at which the
 * peer says that it listens. Keeps the name if `listens` is empty, no port, or
 * no path of printable ASCII. */
void kf_place_rename(char *name, size_t room, bool local,
                     const char listens[KF_LISTENS]);

#endif
