# What is installed is enough: a program that uses both libraries is built and
# run with nothing but the installed files, by pkg-config and by CMake, shared
# and static.  KOFN_BUILD is a build of everything, KOFN_SOURCE the checkout.

setup_file() {
    : "${KOFN_BUILD:?}" "${KOFN_SOURCE:?}"
    cd "$BATS_FILE_TMPDIR"
    cat >main.c <<'END'
#include <kofn.h>
#include <kofn/net.h>
#include <stdio.h>
int main(void)
{
    static double X[60 * 4], w[4] = {1, 2, 3, 4}, y[60];
    kofn_matrix A = {X, 60, 4, 4, KOFN_F64};
    kofn_matrix in = {w, 4, 1, 1, KOFN_F64}, out = {y, 60, 1, 1, KOFN_F64};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 4, 1, KOFN_F64, false);
    kofn_transport *t = NULL;
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;

    for (int i = 0; i < 240; i++)
        X[i] = i;
    if (kofn_net_listen(&t, "tcp://127.0.0.1:*", NULL))
        return 1;
    t->close(t, 0);
    if (kofn_plan_new(&plan, &pb, "mds:k=2", 3, 1) ||
        kofn_port_threads(&port, 3, NULL) ||
        kofn_open(&job, plan, port, NULL) || kofn_place(job, &A) ||
        kofn_round(job, &in, &out, NULL))
        return 2;
    printf("%g\n", y[1]);
    kofn_close(job);
    kofn_plan_free(plan);
    return 0;
}
END
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(kofn REQUIRED)
add_executable(user main.c)
target_link_libraries(user kofn::kofn)
END
}

# used PREFIX [FLAG...]: the program is built against what is there, both ways.
used() {
    local prefix=$1
    shift
    rm -rf cm a.out
    export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kofn.pc)")
    "${CC:-cc}" main.c $(pkg-config --cflags --libs kofn) "$@" -o a.out
    [ "$(./a.out)" = 60 ]
    cmake -S . -B cm -DCMAKE_PREFIX_PATH="$prefix" >cmake.log 2>&1 &&
        cmake --build cm >>cmake.log 2>&1 || { cat cmake.log; return 1; }
    [ "$(./cm/user)" = 60 ]
}

@test "install, shared: a program builds and finds the library" {
    cd "$BATS_FILE_TMPDIR"
    cmake --install "$KOFN_BUILD" --prefix "$PWD/shared" >install.log ||
        { cat install.log; false; }
    unset LD_LIBRARY_PATH # nothing names its folder
    [ -z "$(ldd shared/lib/libkofn.so | grep 'not found')" ]
    used "$PWD/shared" -Wl,-rpath,"$PWD/shared/lib"
    ldd a.out | grep -q "libkofn.so.0 => $PWD/shared/lib"
    ./shared/bin/kofn --version
    ./shared/bin/kofn-papers aet
}

@test "install, moved: a program builds with the moved library" {
    cd "$BATS_FILE_TMPDIR"
    cmake --install "$KOFN_BUILD" --prefix "$PWD/first" >install.log ||
        { cat install.log; false; }
    mkdir -p put/there
    mv first put/there/now
    [ -z "$(grep -e "^[a-z]*=/" put/there/now/lib/pkgconfig/*.pc)" ]
    used "$PWD/put/there/now" -Wl,-rpath,"$PWD/put/there/now/lib"
    ldd a.out | grep -q "libkofn.so.0 => $PWD/put/there/now/lib"
}

@test "install, static: a program builds with static libraries" {
    cd "$BATS_FILE_TMPDIR"
    # one folder deeper than elsewhere, as Debian has it, and moved
    local deep=lib/$("${CC:-cc}" -dumpmachine)
    cmake -S "$KOFN_SOURCE" -B build -DBUILD_SHARED_LIBS=OFF -DKOFN_TESTS=OFF \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX="$PWD/first" \
        -DCMAKE_INSTALL_LIBDIR="$deep" >build.log 2>&1 &&
        cmake --build build -j 2 >>build.log 2>&1 &&
        cmake --install build >>build.log 2>&1 || { tail -30 build.log; false; }
    mv first static
    [ -e static/$deep/libkofn.a ]
    [ -z "$(ls static/$deep/libkofn.so* 2>/dev/null)" ]
    used "$PWD/static"
    [ -z "$(ldd a.out | grep libkofn)" ]
    ./static/bin/kofn --version
    ./static/bin/kofn-papers aet
}
