! ranks.f90 -- multiplies on the ranks of a program that uses MPI itself.
!
!     mpifort PREFIX/share/kofn/fortran/kofn.f90 ranks.f90 -lkofn -o ranks
!     mpirun -n 4 ./ranks
program ranks
    use, intrinsic :: iso_c_binding
    use kofn
    use mpi
    implicit none
    type(c_ptr) :: transport
    integer :: rank, size, ierr, sum

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    call must(kofn_mpi_attach(transport, MPI_COMM_WORLD))
    if (rank == 0) then
        call coordinate(size - 1)
    else
        call must(kofn_serve(transport))
    end if
    call MPI_Allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (sum /= size) error stop 'the sum of all ranks is wrong'
    if (rank == 0) print '(a)', 'ok'
    call MPI_Finalize(ierr)

contains

    subroutine must(st)
        integer(c_int), intent(in) :: st

        if (st == KOFN_OK) return
        print '(a)', kofn_errmsg()
        error stop 1
    end subroutine must

    subroutine coordinate(workers)
        integer, intent(in) :: workers
        real(c_double), target :: a(90, 40), b(40, 5), c(90, 5)
        type(c_ptr) :: plan, port, job

        call random_number(a)
        call random_number(b)
        call must(kofn_plan_new(plan, kofn_problem_for(kofn_view(a), 5), &
            'elastic:k=2', workers, 1))
        call must(kofn_port_away(port, transport, workers))
        call must(kofn_open(job, plan, port))
        call must(kofn_place(job, kofn_view(a)))
        call must(kofn_round(job, kofn_view(b), kofn_view(c)))
        call kofn_close(job) ! the workers' kofn_serve returns
        call kofn_plan_free(plan)
        if (any(abs(c - matmul(a, b)) > 1e-10)) error stop 'a wrong product'
    end subroutine coordinate
end program ranks
