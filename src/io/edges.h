/* edges.h -- a list of edges that is being read, and its nodes.
 *
 * Owned by kf_edges_read.  Tokens point into the bytes of the file. */
#ifndef KF_IO_EDGES_H
#define KF_IO_EDGES_H

#include "io.h"

typedef struct kf_token {
    const char *at;
    size_t length;
} kf_token;

/* The nodes of a list, numbered in the order in which they are met. */
typedef struct kf_nodes {
    kf_token *node;
    size_t count, cap;
    uint32_t *table; /* hash table: 1 + number of a node, or 0 */
    size_t slots;    /* a power of two */
    uint32_t *rank;  /* row of each node in the matrix */
    size_t size;     /* rows of the matrix */
} kf_nodes;

typedef struct kf_edge_list {
    kf_nodes nodes;
    bool numbers;  /* all nodes are numbers */
    bool weighted; /* each edge has a weight */
    uint32_t *end; /* numbers of the two nodes of each edge */
    double *weight;
    size_t count, end_cap, weight_cap;
} kf_edge_list;

/* Sets *number to the number of this node, and adds it if it is new. */
kofn_status kf_nodes_find(kf_nodes *n, kf_token f, uint32_t *number);
/* Gives each node a row: in ascending order of numbers, or of the bytes of
 * names.  With `isolated` a number is its own row, and the others up to the
 * largest are nodes without edges.
 * KOFN_FORMAT: there are too many nodes, or with `isolated` names, or numbers
 * far larger than the number of edges. */
kofn_status kf_nodes_order(kf_edge_list *l, bool isolated);
/* Sets the names of the file, unless the nodes are 0, 1, 2, ... */
kofn_status kf_nodes_name(const kf_edge_list *l, kf_file *f);
void kf_edge_list_free(kf_edge_list *l);

#endif
