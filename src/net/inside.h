/* inside.h -- what the files of the transport over TCP and Unix sockets share.
 *
 * A transport has one lock and one libuv loop.  Whoever holds the lock may do
 * anything: the owner's thread while it waits or sends, and otherwise a thread
 * of the transport's own, the keeper, which takes over when the owner has been
 * away for a moment (loop.c).
 *
 * Links, channels and arrivals are the transport's; but for the keeper's few
 * flags all is read and written with the lock.  Functions of this header that
 * take the lock say so.
 */
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
 * A connection carries frames: a header of 16 bytes, a head, and bytes of a body.
 *
 *     at  bytes
 *      0    1    what it is
 *      1    1    channel: 0, or 1 for what is urgent
 *      2    2    bytes of the head
 *      4    4    bytes of the body in this frame
 *      8    8    PACKET, FILE: bytes of the body in all; CREDIT: what may be sent, in
 *                all since the connection was made
 *
 * Numbers are little-endian.  Who connects says HELLO and is answered by WELCOME,
 * or by GO when it is not wanted; the head of these is a kf_greeting.  A PACKET
 * begins a packet, DATA goes on with its body; one packet of each channel is under
 * way at a time.  Each costs its body and KF_COST, and what is sent in a channel
 * costs no more than the other end has given CREDIT for: at first its window, and
 * again what its owner has taken.  A body that is longer than the credit that is
 * left is announced by a PACKET with nothing of it, and follows when there is
 * credit for all of it, or is not sent at all when SKIP comes instead.  BEAT is a
 * single byte and says nothing.  Between processes of one machine the body of a PACKET
 * without a piece of it may be a memory file, whose descriptor comes with FILE
 * (share.c). */
#define KF_HEADER 16
#define KF_COST 320
#define KF_PIECE ((size_t)256 << 10) /* of a body in a frame, at most */
#define KF_NODE 16
#define KF_NAME 256 /* of a key */

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

#define KF_MAGIC "kofnet04" /* the version is in it */
#define KF_TAKES_FILES 1
#define KF_LISTENS 112 /* bytes; a path of a Unix socket has at most 107 */

typedef struct kf_greeting {
    char magic[8];
    unsigned char node[KF_NODE]; /* who says it; zero but in a mesh          */
    unsigned char silence[8];    /* after so many nanoseconds a peer is lost */
    unsigned char window[8];  /* the first credit of the bulk channel        */
    unsigned char urgent[8];  /* ... and of the urgent one                */
    unsigned char takes[8];   /* KF_TAKES_FILES, or 0                     */
    char listens[KF_LISTENS]; /* of a node of a mesh: the port at which it
                                 listens, or the path of its Unix socket,
                                 and zeros; all zero: it does not say    */
} kf_greeting;

enum { KF_BULK, KF_URGENT, KF_CHANNELS };

/* ---- packets ------------------------------------------------------------- */

typedef struct kf_share kf_share;

#define KF_PASSED 253 /* descriptors that Linux passes at once, at most */

/* Space for descriptors beside the bytes of a Unix socket.  The system itself closes those
 * for which there is no space, and waits for that. */
typedef union kf_passing {
    struct cmsghdr head;
    char room[CMSG_SPACE(KF_PASSED * sizeof(int))];
} kf_passing;

/* A packet that is to be sent: the body is lent. */
typedef struct kf_departure {
    struct kf_departure *next;
    kofn_lent body;
    size_t at, head_bytes; /* so much of the body was sent */
    bool begun;            /* its PACKET has been sent */
    kf_share *share;       /* NULL: it goes to nobody else */
    unsigned char head[KOFN_HEAD_MAX];
} kf_departure;

typedef struct kf_link kf_link;
typedef struct kf_tray kf_tray;
typedef struct kf_account kf_account;

/* A packet that has come, or is coming; or the coming or going of a peer. */
typedef struct kf_arrival {
    struct kf_arrival *next;
    kf_link *from; /* NULL: it is gone; set again when it is taken */
    kofn_arrival what;
    kofn_peer peer;
    size_t head_bytes, bytes, at;
    size_t room;                 /* bytes behind `body` */
    bool urgent, asked, skipped; /* skipped: its body is not sent */
    size_t mapped;               /* bytes of a memory file at `body` */
    kofn_time since;             /* its head came                    */
    unsigned char head[KOFN_HEAD_MAX];
    unsigned char *body; /* NULL: there is none, or nobody wants it */
} kf_arrival;

typedef struct kf_arrivals {
    kf_arrival *first, **last;
} kf_arrivals;

/* An element of a queue of accounts, or of their trays, that have turns. */
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
    KF_DIALLING, /* the system connects            */
    KF_REFUSED,  /* it is a stranger, and was told why */
    KF_SHAKING,  /* who has which key is settled   */
    KF_STRANGE,  /* it has not said who it is      */
    KF_HELD,     /* of a mesh: not let in yet      */
    KF_PEER,     /* it came, and has not gone      */
    KF_PARTING,  /* what was sent last is under way */
    KF_OVER      /* until libuv has let go of it   */
} kf_link_state;

/* The traffic of one channel. */
typedef struct kf_channel {
    kf_departure *first,
        **last;            /* to be sent ...                              */
    size_t queued;         /* ... what it costs                           */
    uint64_t sent, may;    /* what has been sent cost; may cost, in all   */
    kf_arrival *coming;    /* the packet that is on its way to us         */
    uint64_t got;          /* what has come cost, in all                  */
    uint64_t taken, given; /* what its owner has taken; the credit given  */
    uint64_t special;      /* credit that a long body was given           */
    size_t window;
    bool asks; /* `coming` and its cost exceed the window: is it wanted? */
} kf_channel;

struct kf_transport;
struct kf_dial;
struct kf_keys;
struct ssl_st;

/* Flags of what OpenSSL waits for, when that is not what it was asked to do. */
enum { KF_READS_WAIT = 1, KF_WRITES_WAIT = 2 };

#define KF_BUNDLE                                                              \
    ((size_t)264 << 10) /* bytes: sixteen records of full length */

/* Records that are sent under one key: AES-GCM bears 2^24.5 of full length (RFC
 * 8446, 5.5). */
#define KF_REKEY (1u << 23)

/* Records of TLS that are sent by one call of the system.  A link has one while it
 * writes, and for as long as the system has not taken all of it. */
typedef struct kf_bundle {
    size_t at, end; /* what is still to be sent */
    unsigned char bytes[KF_BUNDLE];
} kf_bundle;

struct kf_link {
    struct kf_transport *t;
    kf_link *before, *after; /* of the transport's */
    struct kf_dial *dial;    /* NULL: it connected to us */
    uv_poll_t poll;
    uv_poll_cb ready; /* what is done when `fd` is */
    int fd;
    kf_link_state stage;
    kofn_peer number;
    kf_tray *tray; /* NULL: it has not come */
    unsigned char node[KF_NODE];
    kofn_time since, heard, spoke; /* by `awake` of the transport */
    kofn_time busy;                /* ... when more than a beat came */
    bool calm;                     /* a beat alone does not wake us  */
    kofn_time beat;                /* it is to hear of us that often */
    kofn_time until;               /* KF_PARTING: when it is ended   */
    kf_channel channel[KF_CHANNELS];

    unsigned char part[KF_HEADER + KOFN_HEAD_MAX]; /* of a frame that comes */
    size_t have;
    size_t left; /* bytes of a body that are still to come in this frame, ... */
    int into; /* ... and of which channel                                     */

    unsigned char frame[KF_HEADER + KOFN_HEAD_MAX]; /* that is being sent */
    size_t frame_bytes, frame_at;
    const char *body; /* and its bytes of a body, of `sending` */
    size_t body_bytes;
    int sending;          /* the channel, or -1 */
    const kf_share *with; /* whose descriptor goes with the frame, or NULL */
    unsigned words;       /* to be said: a bit each, see send.c */
    unsigned skips;       /* channels in which SKIP is to be said */
    bool deaf;            /* the other end has closed */
    bool mum;             /* nothing more is said     */
    bool forgotten;       /* ... or heard             */
    bool blocked;         /* waits until more can be written */
    bool unix_socket;
    bool local;  /* descriptors may come ...        */
    bool shares; /* ... and may be sent             */
    int passed;  /* one that came, or -1            */

    struct ssl_st *tls; /* NULL: without keys, or nothing has come yet        */
    size_t shaken;      /* bytes that came before it was done, or refused     */
    unsigned char *record; /* of a stranger, not read by OpenSSL; or NULL     */
    size_t record_have;    /* bytes of it that came, ...                      */
    size_t record_at;      /* ... and that OpenSSL has read                   */
    unsigned waits;    /* KF_READS_WAIT: for what can be written, and so on  */
    char wants;        /* 'r', 'w': what stopped OpenSSL last; 'e': the end  */
    bool again;        /* OpenSSL holds what has come                        */
    unsigned records;  /* that were sent                                     */
    kf_bundle *bundle; /* NULL: the system has all that was encrypted        */

    char name[KF_NAME + 144], principal[KF_NAME];
};

/* ---- dials: connections that are made again after every loss ------------- */

typedef struct kf_dial {
    struct kf_transport *t;
    char *address;
    char who[KF_NAME]; /* whose key is expected; "": the only one's there is */
    char met[KF_NAME]; /* the name of another key that was there, or ""      */
    kf_link *link;     /* NULL: between two incarnations, or looking up */
    bool welcome, over, looking;
    bool lost; /* its link, and what follows is not done yet */
    unsigned char node[KF_NODE]; /* who answered there last (mesh) */
    kofn_time pause, next;
    uv_getaddrinfo_t look;
    struct addrinfo *found, *at; /* those of its addresses to be tried */
} kf_dial;

/* ---- the transport ------------------------------------------------------- */

/* Connections that were ended, and why. */
typedef struct kf_refused {
    uint64_t strange;      /* lost before they were peers            */
    uint64_t full;         /* hardly any descriptors are left        */
    uint64_t crowd;        /* too many strangers                     */
    uint64_t flood;        /* what they sent was not what may come   */
    uint64_t unresponsive; /* did not say who they are               */
    uint64_t keyless;      /* had no key that is listed              */
} kf_refused;

#define KF_SPARE 8 /* buffers that are kept for the next bodies */

typedef struct kf_transport {
    kofn_transport base;
    pthread_mutex_t lock;
    uv_loop_t loop;
    bool looping; /* `loop` was made */
    uv_timer_t tick;
    uv_poll_t door;
    bool open; /* `door` was made */
    int listening,
        spare; /* descriptors; the spare one makes room for a moment */
    kf_link *links;
    size_t strangers, strangers_most;
    kf_link **peer; /* those that came, by number */
    size_t peers, peers_cap;
    kf_dial **dial;
    size_t dials, dials_cap;
    bool redial; /* some have lost their links */
    kofn_peer next;
    bool mesh, insecure;
    struct kf_keys *keys; /* NULL: nothing is encrypted */
    uv_timer_t look;      /* ... at who is listed       */
    uv_timer_t
        dialing; /* until the next attempt to connect, where that is sooner */
    uv_idle_t again;   /* OpenSSL holds what has come */
    int shakes;        /* in this pass               */
    kf_bundle *bundle; /* for the next link; or NULL */
    unsigned char node[KF_NODE];
    size_t peer_bytes;
    unsigned starved; /* connections that memory was wanting for, in a row */
    kofn_time silence;
    kofn_time patience; /* after so long without a word a peer is lost */

    kf_queue waiting[KF_CHANNELS]; /* accounts with packets */
    unsigned hurry;                /* urgent packets that were taken in a row */
    kf_account *accounts;
    kf_tray *ended; /* of connections that are over */
    size_t asking;  /* channels that ask */
    kf_departure
        *finished; /* whose `done` is to be called without the lock ... */
    kf_departure
        *lingering; /* ... when others may have been lent the same body */
    kf_share *shares;
    kf_arrival *kept[KF_SPARE];
    bool dirty; /* the loop does not know yet what it is to wait for    */
    bool full;  /* somebody was told so since the last wait ...         */
    bool room;  /* ... and there is room now                            */
    kf_refused refused, known;
    kofn_time told_at;

    /* loop.c */
    pthread_t keeper;
    pthread_cond_t wake;
    bool kept_by; /* the keeper was started  */
    bool here;    /* the owner's thread waits */
    bool asleep, ending;
    uint64_t turns; /* how often it has left */
    kofn_time left, passed;
    kf_link *latest; /* that something was received from, or NULL          */
    int ready;       /* descriptor that alone woke who waited, or -1        */
    kofn_time ticked, awake; /* time in which others could be heard */
    uv_async_t kick;         /* has the keeper wake up */

    char endpoint[160], trouble[2 * KF_NAME + 344], words[KF_NAME + 144];
    char asked[2 * KF_NAME + 344];  /* the trouble, when it was asked for */
    ino_t file;                     /* of a Unix socket */
    unsigned char stage[64 << 10];  /* of what is read and not yet sorted */
    unsigned char record[16 << 10]; /* that is to be encrypted */
} kf_transport;

/* ---- low.c --------------------------------------------------------------- */

/* The places that are filled among descriptors 0, 1 and 2. */
typedef struct kf_low {
    int fd[3], count;
} kf_low;

/* Around a call that opens a descriptor, which kf_low_end moves up if it must. */
void kf_low_begin(void);
int kf_low_end(int fd);
/* Around calls that open descriptors that cannot be moved. */
void kf_low_fill(kf_low *low);
void kf_low_empty(kf_low *low);
/* Closes a descriptor that a peer has passed, and does not wait for that. */
void kf_low_discard(int fd);

/* ---- loop.c -------------------------------------------------------------- */

kofn_status kf_net_loop_open(kf_transport *t);
/* From now on the keeper does what there is to do while the owner is away. */
kofn_status kf_net_loop_keep(kf_transport *t);
void kf_net_loop_close(kf_transport *t);
/* Does what there is to do, without waiting. */
void kf_net_loop_pass(kf_transport *t);
/* Calls what is to be called without the lock, and lets the lock go. */
void kf_net_loop_unlock(kf_transport *t);
/* Bodies that were lent for several peers are not lent any more. */
void kf_net_loop_release(kf_transport *t);
/* Until all connections are over, and lets the lock go; what comes is not told. */
void kf_net_loop_linger(kf_transport *t, kofn_time until);
kofn_status kf_net_loop_wait(kofn_transport *base, kofn_time atmost,
                             kofn_packet *p);

/* ---- link.c -------------------------------------------------------------- */

/* fd: connected, or about to be, and the link's from now on, also on failure. */
kofn_status kf_link_new(kf_link **out, kf_transport *t, int fd,
                        kf_link_state stage, uv_poll_cb ready);
/* Tells that it is lost, if it was a peer. */
void kf_link_end(kf_link *l);
/* Ends the stranger that came first, or of those that OpenSSL shakes hands with, if
 * they are `most` at least: who only sits there keeps nobody out. */
void kf_link_make_room(kf_transport *t, bool shake, size_t most, uint64_t *why);
/* Ends a stranger who was told why, as soon as he has heard it. */
void kf_link_refuse(kf_link *l);
/* As writev and readv without waiting; -1 with EAGAIN: not now. */
ssize_t kf_link_write(kf_link *l, struct iovec *part, int parts);
ssize_t kf_link_read(kf_link *l, struct iovec *part, int parts);
/* Tells the loop what it waits for now. */
void kf_link_watch(kf_link *l);
/* Calm: only what is longer than a beat makes it ready. */
void kf_link_calm(kf_link *l, bool calm);
/* Has something come to one that is calm? */
void kf_link_listen(kf_link *l);
/* A peer that can be sent to, by its number; and no more. */
kf_link *kf_link_of(const kf_transport *t, kofn_peer number);
void kf_link_unlist(kf_link *l);

/* ---- packets.c ----------------------------------------------------------- */

/* With room for a body behind it, which begins at a multiple of 64 bytes. */
kf_arrival *kf_packets_new(kf_transport *t, size_t bytes);
void kf_packets_free(kf_transport *t, kf_arrival *in);
/* Opens the tray of a link that comes, and reports that it does. */
bool kf_packets_open(kf_link *l);
/* Puts a packet behind those of the link that wait. */
void kf_packets_append(kf_link *l, kf_arrival *in);
/* Returns the next packet, or NULL.  Accounts have turns, and so have their trays.  An
 * urgent packet comes first, but not before the coming of its peer. */
kf_arrival *kf_packets_next(kf_transport *t);
/* Ends the tray of a link that is over.  Its packets can still be taken, and then its
 * going, unless too many of its account wait already. */
void kf_packets_close(kf_link *l);
/* Drops the packets of a peer, and its going. */
void kf_packets_drop(kf_transport *t, kf_tray *b);
/* That of a peer that has gone, or NULL. */
kf_tray *kf_packets_ended(const kf_transport *t, kofn_peer peer);
/* Frees what waits. */
void kf_packets_end(kf_transport *t);
/* The first packet of a channel is done with. */
void kf_packets_sent(kf_transport *t, kf_channel *a);
/* Nothing that is under way is needed any more. */
void kf_packets_clear(kf_link *l);

/* ---- send.c -------------------------------------------------------------- */

/* Writes as much as can be. */
void kf_net_send_on(kf_link *l);
void kf_net_send_word(kf_link *l, kf_word word);
bool kf_net_send_idle(const kf_link *l);
/* Ends it when all that is to be said is said, or by then. */
void kf_net_send_last(kf_link *l, kofn_time until);
/* KOFN_AGAIN: the channel is full; otherwise the packet is the link's. */
kofn_status kf_net_send_packet(kf_link *l, kf_departure *o, bool urgent);
kf_greeting kf_net_send_greeting(const kf_transport *t);
void kf_net_put_number(unsigned char *at, uint64_t n, int bytes);
uint64_t kf_net_number(const unsigned char *at, int bytes);

/* ---- share.c ------------------------------------------------------------- */

/* A body is lent once more; NULL: it is short. */
kf_share *kf_share_join(kf_transport *t, const void *body, size_t bytes);
void kf_share_leave(kf_transport *t, kf_share *s);
/* Writes all of it to a file; false, with errno: that cannot be. */
bool kf_share_write(int fd, const char *bytes, size_t n);
/* Is there a file of it, or are its bytes to be sent? */
bool kf_share_filed(kf_transport *t, kf_share *s);
/* Adds the descriptor to what is sent. */
void kf_share_attach(struct msghdr *m, kf_passing *room, const kf_share *s);
/* Puts the descriptor that came, if one did, in *fd; false: there was one, or one
 * that came was lost, for this process may have no more. */
bool kf_share_detach(struct msghdr *m, int *fd);
/* Closes what has come to a Unix socket and was not read. */
void kf_share_drain(int fd);
/* Maps the file of that size, and closes the descriptor; NULL: it is no such memory file,
 * or is not sealed. */
void *kf_share_map(int fd, size_t bytes);

/* ---- receive.c ----------------------------------------------------------- */

/* The handshake goes on, or what came is received and what waits is sent. */
void kf_net_ready(uv_poll_t *poll, int status, int events);
/* The next arrival that is to be told. */
bool kf_net_receive_next(kf_transport *t, kofn_packet *p);
/* Asks whether announced bodies are wanted: on the owner's thread. */
void kf_net_receive_ask(kf_transport *t);
/* Goes on after others had their turn, if OpenSSL holds what the system has no more. */
void kf_net_receive_rest(kf_link *l);

/* ---- join.c -------------------------------------------------------------- */

/* Looks at the keys again, and ends who is not listed any more. */
void kf_join_look(uv_timer_t *timer);
/* The other end says who it is; false: it is no peer of ours. */
bool kf_join_greeting(kf_link *l, kf_word word, const kf_greeting *g);
/* Lets those in who had to wait for that. */
void kf_join_held(kf_transport *t);
/* Nothing more is heard of a peer, and its going is not told. */
void kf_join_forget(kf_link *l);

/* ---- dial.c -------------------------------------------------------------- */

/* who: whose key is expected there, or "". */
kofn_status kf_dial_new(kf_transport *t, const char *address, const char *who);
/* Begins those that are due. */
void kf_dial_due(kf_transport *t, kofn_time now);
/* Goes on with those whose links are over. */
void kf_dial_again(kf_transport *t);
void kf_dial_free(kf_dial *d);

/* ---- listen.c ------------------------------------------------------------ */

kofn_status kf_listen(kf_transport *t, const char *address);
void kf_listen_end(kf_transport *t);

/* ---- tls.c --------------------------------------------------------------- */

bool kf_tls_new(kf_link *l);
/* Gathers a record of a stranger, 1: it is whole; 0: it waits; -1: it is none. */
int kf_tls_gather(kf_link *l);
/* Why there is no connection; also when it has just begun, for it learns late that
 * its key is refused. */
void kf_tls_say_why(const kf_link *l);
/* As kf_link_write, of two parts, and kf_link_read; the link may wait for something
 * else afterwards. */
ssize_t kf_tls_write(kf_link *l, const struct iovec part[2]);
ssize_t kf_tls_read(kf_link *l, struct iovec *part, int parts);
/* Sends what is encrypted; false, with errno: there is something left. */
bool kf_tls_flush(kf_link *l);
/* Holds OpenSSL more of what the system has given? */
bool kf_tls_holds(const kf_link *l);
/* Says that nothing more is said. */
void kf_tls_bye(kf_link *l);
void kf_tls_free(kf_link *l);

/* ---- shake.c ------------------------------------------------------------- */

/* Goes on with its handshake; the link may be over afterwards. */
void kf_shake(kf_link *l);
/* With how many strangers OpenSSL shakes hands at a time. */
size_t kf_shake_most(const kf_transport *t);

/* ---- keys.c -------------------------------------------------------------- */

/* Reads them, if there are any. */
kofn_status kf_keys_open(kf_transport *t, bool listens, bool dials,
                         const kofn_net_options *o);
void kf_keys_free(struct kf_keys *k);
/* Are they to be looked at again, every second? */
bool kf_keys_may_change(const struct kf_keys *k);
/* Reads files that have changed; true: others are listed now.  The files of a CA are
 * for connections that are made from now on; where they do not fit, the former are
 * used. */
bool kf_keys_renew(struct kf_keys *k);
/* The name of the key at the other end, if it is listed. */
bool kf_keys_name(const kf_link *l, char name[KF_NAME]);
/* Is the peer's key not listed any more, or another's by now? */
bool kf_keys_revoked(const kf_link *l);
/* Writes what is wrong with keys that were to be renewed, at most once a minute; or
 * returns false. */
bool kf_keys_news(struct kf_keys *k, char *words, size_t room);
/* NAME@ADDRESS: who, "" without one, and the address; is it somebody's? */
kofn_status kf_keys_expect(const kf_transport *t, const char **address,
                           char who[KF_NAME]);

/* ---- place.c ------------------------------------------------------------- */

typedef struct kf_place {
    struct sockaddr_storage at;
    socklen_t bytes;
} kf_place;

/* Is this an address, to listen at or to connect to, and one that may be used? */
kofn_status kf_place_check(const char *address, bool listens, bool anywhere);
/* Advice for where one cannot listen. */
const char *kf_place_advice(int error);
/* The place to listen at; any_v6: the one for all interfaces is that of IPv6. */
kofn_status kf_place_here(const char *address, bool any_v6, kf_place *out);
/* Is it to listen at every interface of the machine? */
bool kf_place_everywhere(const char *address);
/* KOFN_AGAIN: its host is to be looked up; host: room for 256. */
kofn_status kf_place_there(const char *address, kf_place *out, char *host,
                           const char **port);
/* Is nobody there yet, so that a Unix socket may be put there? */
kofn_status kf_place_vacant(const char *address);
/* As people write it. */
void kf_place_text(const struct sockaddr *at, char *out, size_t room);
/* The principal of a connection without a key: its host, or its user. */
void kf_place_principal(int fd, char *out, size_t room);
/* Writes the port of the endpoint, or the path of its Unix socket, or nothing if that is
 * too long; the rest of `out` is zero. */
void kf_place_listens(const char *endpoint, char out[KF_LISTENS]);
/* Makes of name, HOST:PORT of a connection, the address at which the peer says that it
 * listens.  Leaves the name as it is if `listens` is empty, no port, or no path of
 * printable ASCII. */
void kf_place_rename(char *name, size_t room, bool local,
                     const char listens[KF_LISTENS]);

#endif
