# fortran.bats -- the module for Fortran: its examples are compiled and run.  Both
# compare with matmul.

setup() {
    : "${KOFN_BUILD:?}" "${KOFN_SOURCE:?}"
    cd "$BATS_TEST_TMPDIR"
    [ -e "$KOFN_BUILD/libkofn.so" ] || skip "it was built without shared libraries"
    sources=$KOFN_SOURCE/examples/fortran
}

# made COMPILER PROGRAM [FLAG...]: compiles an example without a warning.
made() {
    local compiler=$1 program=$2
    shift 2
    "$compiler" -Wall -Wextra -Werror "$@" "$KOFN_SOURCE/share/fortran/kofn.f90" \
        "$sources/$program.f90" -L"$KOFN_BUILD" -lkofn -Wl,-rpath,"$KOFN_BUILD" -o "$program"
}

@test "fortran: products, sections of arrays and jobs are those of matmul" {
    command -v gfortran || skip "gfortran is not here"
    made gfortran product -std=f2018 -pedantic -fcheck=all
    run ./product
    [ "$status" -eq 0 ] && [ "$output" = ok ] || { echo "$status: $output"; false; }
}

@test "fortran: ranks of a communicator multiply" {
    local mpi any=
    for mpi in openmpi mpich; do
        command -v "mpifort.$mpi" && command -v "mpirun.$mpi" || continue
        [ -e "$KOFN_BUILD/libkofn-mpi-$mpi.so" ] || continue
        any=yes
        made "mpifort.$mpi" ranks
        flags=
        [ "$mpi" = openmpi ] && flags="--oversubscribe"
        [ "$mpi" = openmpi ] && [ "$(id -u)" = 0 ] && flags="$flags --allow-run-as-root"
        run timeout -k 2 50 "mpirun.$mpi" $flags -n 3 ./ranks
        [ "$status" -eq 0 ] && [ "$output" = ok ] || { echo "$mpi: $status: $output"; false; }
    done
    [ -n "$any" ] || skip "no MPI with Fortran is here"
}

@test "fortran: structs have the sizes and constants that C has" {
    command -v gfortran || skip "gfortran is not here"
    local name=$KOFN_SOURCE/share/fortran/kofn.f90
    cat >sizes.f90 <<'END'
subroutine sizes(of) bind(c)
    use, intrinsic :: iso_c_binding
    use kofn
    integer(c_size_t), intent(out) :: of(2)
    type(kofn_matrix) :: m
    type(kofn_problem) :: p

    of = [c_sizeof(m), c_sizeof(p)]
end subroutine sizes
END
    { echo '#include <kofn.h>
#include <stdio.h>
void sizes(size_t *of);
int main(void)
{
    size_t of[2], bad = 0;
    sizes(of);
    bad |= of[0] != sizeof(kofn_matrix) || of[1] != sizeof(kofn_problem);'
        sed -n '/integer(c_int), parameter/,/[0-9]$/p' "$name" |
            grep -o 'KOFN_[A-Z0-9]* = [0-9]*' | sed 's/ = \(.*\)/ != \1;/; s/^/    bad |= /'
        echo '    return bad != 0;
}'; } >main.c
    [ "$(grep -c 'bad |= KOFN' main.c)" -eq 8 ]
    gfortran -c "$name" sizes.f90
    "${CC:-cc}" -I"$KOFN_SOURCE/include" main.c sizes.o kofn.o -L"$KOFN_BUILD" -lkofn \
        -lgfortran -Wl,-rpath,"$KOFN_BUILD" -o sizes
    ./sizes
}
