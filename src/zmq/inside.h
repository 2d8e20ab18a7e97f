/* inside.h -- what the files of the ZeroMQ transport share. */
#ifndef KF_ZMQ_INSIDE_H
#define KF_ZMQ_INSIDE_H

#include <kofn/zmq.h>

#include "base/base.h"
#include "base/clock.h"
#include "keys.h"

#include <stdatomic.h>
#include <sys/types.h>

#define KF_MILLI INT64_C(1000000)

/* ---- on the wire ---------------------------------------------------------
 *
 * Who connects draws a token for each incarnation and connects two DEALER
 * sockets whose routing ids are "kb" + token (bulk) and "ku" + token (urgent).
 * Nobody else can know the token, so nobody can put himself in another's place.
 * A packet is one message or more, each of two frames: in the first message
 * the length of the body (8 bytes, little-endian) and the head, then as much
 * of the body as a chunk holds; in those that follow an empty frame and the
 * next chunk.  A body goes as one chunk if its receiver takes messages that
 * long, for putting it together costs a copy; each end says in its greeting
 * how long they may be.  Notes of the transport itself are one frame: HELLO on
 * both connections, answered by WELCOME on the bulk one; GO tells the other
 * end that it is not wanted.  Who closes says BYE on the bulk connection and waits
 * for it to be said in return: ZeroMQ loses what its other end has not read
 * when a connection ends. */
#define KF_TOKEN 16
#define KF_ID (2 + KF_TOKEN)
#define KF_BULK 'b'
#define KF_URGENT 'u'
#define KF_CHUNK ((size_t)1 << 20)
#define KF_LEAD (8 + KOFN_HEAD_MAX) /* the longest first frame */

typedef enum kf_word {
    KF_HELLO = 'H',
    KF_WELCOME = 'W',
    KF_GO = 'G',
    KF_BYE = 'B'
} kf_word;

typedef struct kf_greeting {
    char magic[7]; /* "kofnz03": the version is in it */
    char word;
    unsigned char node[KF_TOKEN]; /* who says it; zero but in a mesh */
    unsigned char whole[8]; /* the longest chunk that it takes, little-endian */
} kf_greeting;

#define KF_MAGIC "kofnz03"

/* ---- the doors: who is connected to us, by descriptor (doors.c) ---------- */

/* Used by the gate's thread and the transport's. */
typedef struct kf_doors kf_doors;

/* Connections that were ended or lost, and why. */
typedef struct kf_refused {
    uint64_t silent; /* lost before they belonged to a peer       */
    uint64_t full;   /* hardly any descriptors are left           */
    uint64_t crowd;  /* too many strangers                        */
    uint64_t flood;  /* more bytes without a message than allowed */
    uint64_t mute;   /* did not say HELLO                         */
    uint64_t away;   /* kf_doors_end                              */
    uint64_t dead;   /* peers without a heartbeat                 */
} kf_refused;

/* ahead_bytes: what a peer may have sent since its last message that was
 * received, besides what the system holds; message_bytes: the same where no
 * others wait to be received. */
kofn_status kf_doors_new(kf_doors **out, size_t strangers, size_t ahead_bytes,
                         size_t message_bytes);
void kf_doors_free(kf_doors *d);
/* A connection was accepted on fd, or lost; true: there are news, and there
 * were none. */
bool kf_doors_event(kf_doors *d, bool accepted, int fd, kofn_time now);
/* The number of the next connection that is let in. */
uint64_t kf_doors_let_in(kf_doors *d);
/* Ends those who cost too much; how soon to look again. */
kofn_time kf_doors_look(kf_doors *d, kofn_time now);
/* Is connection `number`, which has descriptor fd, lost? */
bool kf_doors_lost(kf_doors *d, int fd, uint64_t number);
/* Has any been lost since the last call? */
bool kf_doors_news(kf_doors *d);
/* It belongs to a peer and is no stranger any more.  Over TCP it is ended when
 * nothing comes for so long (KOFN_NEVER: it is not); a Unix socket does not
 * tell. */
void kf_doors_peer(kf_doors *d, int fd, uint64_t number, kofn_time silence);
/* A whole message came over it. */
void kf_doors_heard(kf_doors *d, int fd);
/* All whole messages that had come by then were received. */
void kf_doors_listened(kf_doors *d, kofn_time now);
/* End it at the time. */
void kf_doors_end(kf_doors *d, int fd, uint64_t number, kofn_time when);
kf_refused kf_doors_refused(kf_doors *d);
/* Are `need` descriptors left?  ZeroMQ ends the process where it gets none.
 * `like` is one of any kind. */
kofn_status kf_descriptors(int like, size_t need);

/* ---- the gate: who may come in, and who is gone -------------------------- */

/* A thread that answers ZAP requests and watches for lost connections while
 * the transport's own thread computes.  It numbers connections as they are
 * let in; the number comes along with their packets (User-Id). */
typedef struct kf_gate kf_gate;

/* Before the router is bound.  Keys that are not in `allowed` stay outside;
 * NULL: nothing is encrypted.  A byte is written to `wake` at every loss. */
kofn_status kf_gate_open(kf_gate **out, void *context, void *router,
                         kf_list *allowed, kf_doors *doors, int wake);
/* After the context was shut down. */
void kf_gate_close(kf_gate *g);

/* ---- dials: connections that are made again after every loss ------------- */

typedef struct kf_dial {
    char *address;
    char server[KF_KEY_TEXT + 1]; /* whose key is expected there, ... */
    char who[KF_KEY_NAME];        /* ... its name; "": the common one */
    void *bulk, *urgent;          /* NULL between incarnations */
    void *bulk_watch, *urgent_watch;
    int fd[4]; /* of the four, see kf_zmq_socket_fd */
    unsigned char token[KF_TOKEN];
    unsigned shaken;              /* connections that are made */
    bool welcome, over;           /* over: not tried any more */
    bool spent;                   /* it sent what may not be sent */
    bool v6;                      /* its name is looked up so */
    kofn_peer peer;               /* once welcome */
    unsigned char node[KF_TOKEN]; /* who answered there last (mesh) */
    kofn_time pause, next;        /* between incarnations: until when */
    kofn_time until;              /* to be connected ... */
    kofn_time patience;           /* ... within so long  */
} kf_dial;

/* What sockets are made with. */
typedef struct kf_set {
    void *context;
    int any; /* a descriptor */
    size_t body_max;
    size_t peer_bytes; /* received before they are wanted */
    kofn_time silence;
    unsigned char node[KF_TOKEN];
    bool insecure;
    kf_keys own;      /* own.count is 0: no encryption                   */
    kf_keys server;   /* expected of those who are reached; empty: each
                       has one of his own                              */
    kf_list *allowed; /* of those who listen; NULL: anybody */
} kf_set;

/* Is this an address, to listen at or to connect to, and one that may be used
 * with what is set? */
kofn_status kf_address_check(const char *address, bool listens,
                             const kf_set *set);
/* ZeroMQ removes what has the name of its socket, whatever it is: may it? */
kofn_status kf_address_vacant(const char *address);
/* What to do where one cannot listen. */
const char *kf_address_advice(int error);
/* The longest body that is received there as one message; longer ones come in
 * chunks of KF_CHUNK. */
size_t kf_address_whole(const char *address, const kf_set *set);
/* How many messages of one connection are received before they are wanted. */
size_t kf_address_ahead(const char *address, const kf_set *set);
/* Is its host given as four numbers? */
bool kf_address_v4(const char *address);
/* Is it a name, and of which there may be addresses of both kinds? */
bool kf_address_is_name(const char *address);
bool kf_address_is_localhost(const char *address);
/* Where to listen at a name of this machine: at numbers, of IPv4 if it has
 * such. */
#define KF_ADDRESS 96
kofn_status kf_address_numbers(const char *address, char out[KF_ADDRESS]);
/* What one says to who is there. */
kf_greeting kf_address_greeting(const char *address, const kf_set *set,
                                kf_word word);

kofn_status kf_dial_open(kf_dial *d, const kf_set *set, kofn_time now);
/* Looks after the sockets; true when this incarnation is over, and why. */
bool kf_dial_lost(kf_dial *d, kofn_time now, char *why, size_t room);
/* When there is something to be done; KOFN_NEVER: not before it is lost. */
kofn_time kf_dial_due(const kf_dial *d);
/* Ends an incarnation; the next one begins after a pause. */
void kf_dial_end(kf_dial *d, kofn_time now, int linger);
void kf_dial_close(kf_dial *d, int linger);

/* ---- sockets ------------------------------------------------------------- */

/* server: the key that is expected there, or NULL.  v6: IPv6 as well, or first. */
kofn_status kf_zmq_socket(void **out, const kf_set *set, int type,
                          const char *address, const char *server, bool v6);
void kf_zmq_socket_set(void *s, int option, int value);
/* As zmq_send and zmq_recv without waiting, and again when a signal has
 * interrupted them: in the middle of a packet it would be lost. */
int kf_zmq_socket_send(void *s, const void *frame, size_t bytes, int flags);
int kf_zmq_socket_receive(void *s, void *frame, size_t room);
/* Readable when something may have happened to s since it last had nothing to
 * be received. */
int kf_zmq_socket_fd(void *s);
/* A socket that receives `events` of s. */
void *kf_zmq_socket_watch(void *context, void *s, int events);
/* The next event and its value, or 0. */
int kf_zmq_socket_event(void *watch, int *value);
kofn_status kf_zmq_random(void *into, size_t bytes);

/* ---- peers --------------------------------------------------------------- */

/* A body that is lent to ZeroMQ, by chunks. */
typedef struct kf_loan kf_loan;

/* One of the two connections of a peer. */
typedef struct kf_zmq_way {
    bool there; /* and of those who connected to us: */
    int fd;
    uint64_t number; /* the gate's */
    struct {
        kf_loan *loan; /* NULL: nothing is on its way */
        const char *body;
        size_t at, bytes;
    } out;
    struct {
        size_t left; /* bytes that are still to come; 0: none */
        size_t at;
        char *room; /* NULL: nobody wants them */
        unsigned char head[KOFN_HEAD_MAX];
        size_t head_bytes;
    } in;
} kf_zmq_way;

/* One incarnation of somebody. */
typedef struct kf_peer {
    unsigned char token[KF_TOKEN], node[KF_TOKEN];
    kf_dial *dial; /* NULL: he connected to us */
    kofn_peer number;
    bool came, dying, forgotten;
    bool bid; /* BYE was said to it */
    kofn_time since;
    kf_zmq_way bulk, urgent;
    size_t whole;                /* the longest chunk that it takes */
    char name[136];              /* address and key, for people */
    char key[KF_KEY_TEXT + 1];   /* of who connected to us, or "-" */
    char principal[KF_KEY_NAME]; /* the key's name, or the host; in a mesh
                                    "" of those without keys of their own */
} kf_peer;

/* Found by token and by number. */
typedef struct kf_peers {
    kf_peer **item;
    size_t count, cap;
    kf_peer **slot; /* open addressing; a power of two */
    size_t slots;
} kf_peers;

kofn_status kf_peers_add(kf_peers *ps, const unsigned char *token,
                         kf_peer **out);
/* p has come: it is found by its number from now on. */
void kf_peers_number(kf_peers *ps, kf_peer *p, kofn_peer number);
void kf_peers_remove(kf_peers *ps, kf_peer *p);
kf_peer *kf_peers_by_token(const kf_peers *ps, const unsigned char *token);
kf_peer *kf_peers_by_number(const kf_peers *ps, kofn_peer number);
void kf_peers_free(kf_peers *ps);

/* ---- the transport ------------------------------------------------------- */

typedef struct kf_news {
    kofn_arrival what;
    kofn_peer peer;
} kf_news;

struct pollfd;

typedef struct kf_transport {
    kofn_transport base;
    kf_set set;
    void *router;
    int router_fd;
    kf_gate *gate;
    kf_doors *doors;
    kf_dial **dial;
    size_t dials, dials_cap;
    bool mesh;
    int wake[2]; /* a pipe: losses, and room where there was none */
    atomic_bool refused, room;
    size_t strangers;

    kf_peers peers;
    kofn_peer next;
    size_t dying;
    kofn_time dying_since;
    size_t held;    /* whole, but not yet let in                */
    size_t pushing; /* ways on which a body is going out        */
    bool full;      /* somebody was told so since the last wait */
    bool closing;
    kf_news *news;
    size_t told, news_count, news_cap;
    uint64_t dropped; /* not counting the gate's */
    size_t next_heard;
    struct pollfd *item;
    char endpoint[160], trouble[256], words[200];
    kf_refused known;  /* that have been told ... */
    kofn_time told_at; /* ... and when            */
    ino_t file;        /* of a Unix socket */
} kf_transport;

/* The next coming or going that is to be told. */
bool kf_meet_news(kf_transport *t, kofn_packet *p);
/* A connection says who it is: id is its name, m (a zmq_msg_t) the note. */
kofn_status kf_meet_hello(kf_transport *t, const char *id, void *m);
/* Another connection goes by the name of one of p's. */
void kf_meet_taken(kf_transport *t, kf_peer *p);
/* The other end of a dial has something to say. */
kofn_status kf_meet_greeting(kf_transport *t, kf_dial *d,
                             const kf_greeting *note);
/* Lets those in who had to wait for that. */
kofn_status kf_meet_held(kf_transport *t);
/* Finds out who is lost; their going is told by kf_meet_bury. */
void kf_meet_lost(kf_transport *t);
kofn_status kf_meet_bury(kf_transport *t);
/* Says BYE to everybody; how many have not said it in return.  tried: it had not
 * been said to all of them yet (may be NULL). */
size_t kf_meet_bid(kf_transport *t, bool *tried);
/* Ends the incarnations of dials that are lost and begins those that are due;
 * KOFN_PARTIAL if there were any. */
kofn_status kf_meet_dials(kf_transport *t);
void kf_meet_forget(kofn_transport *base, kofn_peer peer);
void kf_zmq_route_id(char id[KF_ID], const kf_peer *p, char channel);

kofn_status kf_zmq_packet_send(kofn_transport *base, kofn_peer peer,
                               const void *head, size_t head_bytes,
                               const void *body, size_t body_bytes, bool urgent,
                               void (*done)(void *ud), void *ud);
/* Sends on what is on its way, as far as there is room. */
void kf_zmq_send_on(kf_transport *t);
/* What is on its way to and from it is wanted no more. */
void kf_zmq_way_clear(kf_transport *t, kf_zmq_way *w);

/* Takes one message: KOFN_OK with a packet, KOFN_PARTIAL if it was something
 * else, KOFN_AGAIN if there is none. */
kofn_status kf_zmq_arrive(kf_transport *t, kofn_packet *p);
void kf_zmq_arrival_release(kofn_transport *base, void *own);

#endif
