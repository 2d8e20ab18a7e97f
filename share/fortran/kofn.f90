! kofn.f90 -- kofn for Fortran: the functions of a job, and of one product.
!
!     gfortran PREFIX/share/kofn/fortran/kofn.f90 program.f90 -lkofn
!
! kofn stores matrices by rows, and Fortran by columns.  So the numbers of a
! Fortran matrix are for kofn those of its transpose, and nothing is copied:
! kofn_view returns the transpose of its argument.  kofn_product takes Fortran's
! matrices as they are.  It computes C = A B as C' = B' A'.
!
! Names and statuses are those of C; the man pages describe them.  Arrays that a
! view is made of need the attribute target, and contiguous columns.
module kofn
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: kofn_matrix, kofn_problem, kofn_view, kofn_problem_for
    public :: kofn_plan_new, kofn_plan_free, kofn_port_threads, kofn_port_away
    public :: kofn_open, kofn_place, kofn_round, kofn_finish, kofn_close
    public :: kofn_product, kofn_errmsg, kofn_mpi_attach, kofn_serve

    integer(c_int), parameter, public :: KOFN_OK = 0, KOFN_PARTIAL = 1
    integer(c_int), parameter, public :: KOFN_F64 = 0, KOFN_F32 = 1
    integer(c_int), parameter, public :: KOFN_MATVEC = 1, KOFN_MATMUL = 2, &
        KOFN_LEFT = 4, KOFN_GRAM = 8

    ! A view of numbers that are stored by rows.
    type, bind(c) :: kofn_matrix
        type(c_ptr) :: data = c_null_ptr
        integer(c_size_t) :: rows = 0, cols = 0, ld = 0
        integer(c_int) :: dtype = KOFN_F64
    end type kofn_matrix

    ! The operation and its sizes, as C has them.
    type, bind(c) :: kofn_problem
        integer(c_size_t) :: size = 0 ! set by kofn_plan_new
        integer(c_int) :: op = KOFN_MATMUL
        integer(c_size_t) :: m = 0, n = 0, p = 1
        integer(c_int) :: dtype = KOFN_F64
        logical(c_bool) :: sparse = .false.
    end type kofn_problem

    ! The members of C's kofn_away_options.
    type, bind(c) :: away_options
        integer(c_size_t) :: size, workers
        integer(c_int64_t) :: job = 0
        type(c_ptr) :: source = c_null_ptr
        integer(c_int64_t) :: silence = 0
        integer(c_size_t) :: strangers = 0, crowd = 0
        type(c_ptr) :: name = c_null_ptr
        logical(c_bool) :: alone = .false.
        type(c_funptr) :: start = c_null_funptr, kill = c_null_funptr
        type(c_ptr) :: ud = c_null_ptr
        type(c_funptr) :: news = c_null_funptr, ended = c_null_funptr
        real(c_double) :: weight = 0
    end type away_options

    ! Returns the transpose of an array, as kofn reads it.  A vector of n numbers
    ! becomes 1 x n.  If columns are not contiguous, the view has no numbers, and
    ! kofn refuses it as missing.
    interface kofn_view
        module procedure view_f64, view_f32, vector_f64, vector_f32
    end interface kofn_view

    ! Computes C = A B on threads, with that scheme.  The arrays may be sections
    ! with contiguous columns.  Returns a status.
    interface kofn_product
        module procedure product_f64, product_f32
    end interface kofn_product

    interface
        integer(c_int) function c_product(a, b, c, scheme, workers) &
            bind(c, name="kofn_product")
            import
            type(kofn_matrix), intent(in) :: a, b
            type(kofn_matrix), intent(inout) :: c
            character(kind=c_char), intent(in) :: scheme(*)
            integer(c_size_t), value :: workers
        end function c_product

        integer(c_int) function c_plan_new(plan, pb, spec, workers, seed) &
            bind(c, name="kofn_plan_new")
            import
            type(c_ptr), intent(out) :: plan
            type(kofn_problem), intent(in) :: pb
            character(kind=c_char), intent(in) :: spec(*)
            integer(c_size_t), value :: workers
            integer(c_int64_t), value :: seed
        end function c_plan_new

        integer(c_int) function c_port_threads(port, workers, faults) &
            bind(c, name="kofn_port_threads")
            import
            type(c_ptr), intent(out) :: port
            integer(c_size_t), value :: workers
            type(c_ptr), value :: faults
        end function c_port_threads

        integer(c_int) function c_port_away(port, transport, opt) &
            bind(c, name="kofn_port_away")
            import
            type(c_ptr), intent(out) :: port
            type(c_ptr), value :: transport
            type(away_options), intent(in) :: opt
        end function c_port_away

        integer(c_int) function c_open(job, plan, port, opt) &
            bind(c, name="kofn_open")
            import
            type(c_ptr), intent(out) :: job
            type(c_ptr), value :: plan, port, opt
        end function c_open

        integer(c_int) function c_round(job, in, out, rep) &
            bind(c, name="kofn_round")
            import
            type(c_ptr), value :: job, rep
            type(kofn_matrix), intent(in) :: in
            type(kofn_matrix), intent(inout) :: out
        end function c_round

        integer(c_int) function c_mpi_attach(transport, comm, opt) &
            bind(c, name="kofn_mpi_attach")
            import
            type(c_ptr), intent(out) :: transport
            integer(c_int), value :: comm
            type(c_ptr), value :: opt
        end function c_mpi_attach

        integer(c_int) function c_serve(transport, opt) &
            bind(c, name="kofn_serve")
            import
            type(c_ptr), value :: transport, opt
        end function c_serve

        type(c_ptr) function c_errmsg() bind(c, name="kofn_errmsg")
            import
        end function c_errmsg

        integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
            import
            type(c_ptr), value :: text
        end function c_strlen

        ! Borrows the numbers of A until kofn_close.
        integer(c_int) function kofn_place(job, a) bind(c)
            import
            type(c_ptr), value :: job
            type(kofn_matrix), intent(in) :: a
        end function kofn_place

        integer(c_int) function kofn_finish(job) bind(c)
            import
            type(c_ptr), value :: job
        end function kofn_finish

        subroutine kofn_close(job) bind(c)
            import
            type(c_ptr), value :: job
        end subroutine kofn_close

        subroutine kofn_plan_free(plan) bind(c)
            import
            type(c_ptr), value :: plan
        end subroutine kofn_plan_free
    end interface

contains

    ! ---- views ---------------------------------------------------------------

    ! Returns the view of `cols` columns of `rows` numbers each of `bytes` bytes.
    ! `second` is the address of the second number of a column, and `next` that of
    ! the second column.
    type(kofn_matrix) function view(first, second, next, rows, cols, dtype)
        type(c_ptr), intent(in) :: first, second, next
        integer, intent(in) :: rows, cols
        integer(c_int), intent(in) :: dtype
        integer(c_intptr_t) :: bytes, column

        bytes = merge(8, 4, dtype == KOFN_F64)
        column = rows * bytes
        if (cols > 1) column = distance(first, next)
        view = kofn_matrix(first, cols, rows, max(column / bytes, 0_c_intptr_t), &
            dtype)
        if (rows > 1 .and. distance(first, second) /= bytes) view%data = c_null_ptr
        if (modulo(column, bytes) /= 0) view%data = c_null_ptr
    end function view

    integer(c_intptr_t) function distance(from, to)
        type(c_ptr), intent(in) :: from, to

        distance = transfer(to, distance) - transfer(from, distance)
    end function distance

    type(kofn_matrix) function view_f64(a) result(v)
        real(c_double), intent(in), target :: a(:, :)
        integer :: m, n

        m = size(a, 1)
        n = size(a, 2)
        if (m == 0 .or. n == 0) then
            v = kofn_matrix(c_null_ptr, n, m, m, KOFN_F64)
        else
            v = view(c_loc(a(1, 1)), c_loc(a(min(m, 2), 1)), &
                c_loc(a(1, min(n, 2))), m, n, KOFN_F64)
        end if
    end function view_f64

    type(kofn_matrix) function view_f32(a) result(v)
        real(c_float), intent(in), target :: a(:, :)
        integer :: m, n

        m = size(a, 1)
        n = size(a, 2)
        if (m == 0 .or. n == 0) then
            v = kofn_matrix(c_null_ptr, n, m, m, KOFN_F32)
        else
            v = view(c_loc(a(1, 1)), c_loc(a(min(m, 2), 1)), &
                c_loc(a(1, min(n, 2))), m, n, KOFN_F32)
        end if
    end function view_f32

    type(kofn_matrix) function vector_f64(x) result(v)
        real(c_double), intent(in), target :: x(:)
        integer :: n

        n = size(x)
        v = kofn_matrix(c_null_ptr, 1, n, n, KOFN_F64)
        if (n > 0) v = view(c_loc(x(1)), c_loc(x(min(n, 2))), c_loc(x(1)), n, 1, &
            KOFN_F64)
    end function vector_f64

    type(kofn_matrix) function vector_f32(x) result(v)
        real(c_float), intent(in), target :: x(:)
        integer :: n

        n = size(x)
        v = kofn_matrix(c_null_ptr, 1, n, n, KOFN_F32)
        if (n > 0) v = view(c_loc(x(1)), c_loc(x(min(n, 2))), c_loc(x(1)), n, 1, &
            KOFN_F32)
    end function vector_f32

    ! Returns the problem of products C = A B with an A that stays on the workers.
    ! `a` is kofn_view(A), and B has p columns.  kofn computes C' = B' A'.  The
    ! input of a round is kofn_view(B), and its output is kofn_view(C).
    type(kofn_problem) function kofn_problem_for(a, p) result(pb)
        type(kofn_matrix), intent(in) :: a
        integer, intent(in) :: p

        pb = kofn_problem(op=KOFN_LEFT, m=a%rows, n=a%cols, p=p, dtype=a%dtype)
    end function kofn_problem_for

    ! ---- one product ---------------------------------------------------------

    integer(c_int) function product_f64(a, b, c, scheme, workers) result(st)
        real(c_double), intent(in), target :: a(:, :), b(:, :)
        real(c_double), intent(inout), target :: c(:, :)
        character(*), intent(in) :: scheme
        integer, intent(in) :: workers

        st = product_of(kofn_view(a), kofn_view(b), kofn_view(c), scheme, workers)
    end function product_f64

    integer(c_int) function product_f32(a, b, c, scheme, workers) result(st)
        real(c_float), intent(in), target :: a(:, :), b(:, :)
        real(c_float), intent(inout), target :: c(:, :)
        character(*), intent(in) :: scheme
        integer, intent(in) :: workers

        st = product_of(kofn_view(a), kofn_view(b), kofn_view(c), scheme, workers)
    end function product_f32

    ! Computes C' = B' A' of the transposes.
    integer(c_int) function product_of(a, b, c, scheme, workers) result(st)
        type(kofn_matrix), intent(in) :: a, b, c
        character(*), intent(in) :: scheme
        integer, intent(in) :: workers
        type(kofn_matrix) :: to

        to = c
        st = c_product(b, a, to, scheme // c_null_char, int(workers, c_size_t))
    end function product_of

    ! ---- a job ---------------------------------------------------------------

    integer(c_int) function kofn_plan_new(plan, pb, spec, workers, seed) result(st)
        type(c_ptr), intent(out) :: plan
        type(kofn_problem), intent(in) :: pb
        character(*), intent(in) :: spec
        integer, intent(in) :: workers, seed
        type(kofn_problem) :: whole

        whole = pb
        whole%size = c_sizeof(whole)
        st = c_plan_new(plan, whole, spec // c_null_char, &
            int(workers, c_size_t), int(seed, c_int64_t))
    end function kofn_plan_new

    integer(c_int) function kofn_port_threads(port, workers) result(st)
        type(c_ptr), intent(out) :: port
        integer, intent(in) :: workers

        st = c_port_threads(port, int(workers, c_size_t), c_null_ptr)
    end function kofn_port_threads

    ! Takes the transport over, even if it fails.
    integer(c_int) function kofn_port_away(port, transport, workers) result(st)
        type(c_ptr), intent(out) :: port
        type(c_ptr), intent(in) :: transport
        integer, intent(in) :: workers
        type(away_options) :: opt

        opt%size = c_sizeof(opt)
        opt%workers = workers
        st = c_port_away(port, transport, opt)
    end function kofn_port_away

    ! Takes the port over, even if it fails.
    integer(c_int) function kofn_open(job, plan, port) result(st)
        type(c_ptr), intent(out) :: job
        type(c_ptr), intent(in) :: plan, port

        st = c_open(job, plan, port, c_null_ptr)
    end function kofn_open

    integer(c_int) function kofn_round(job, in, out) result(st)
        type(c_ptr), intent(in) :: job
        type(kofn_matrix), intent(in) :: in, out
        type(kofn_matrix) :: to

        to = out
        st = c_round(job, in, to, c_null_ptr)
    end function kofn_round

    ! Opens the transport between the ranks of a communicator: rank 0 coordinates,
    ! and the other ranks call kofn_serve.  `comm` is an integer; in the module
    ! mpi_f08 that is comm%MPI_VAL.
    integer(c_int) function kofn_mpi_attach(transport, comm) result(st)
        type(c_ptr), intent(out) :: transport
        integer, intent(in) :: comm

        st = c_mpi_attach(transport, int(comm, c_int), c_null_ptr)
    end function kofn_mpi_attach

    integer(c_int) function kofn_serve(transport) result(st)
        type(c_ptr), intent(in) :: transport

        st = c_serve(transport, c_null_ptr)
    end function kofn_serve

    ! Returns the message of the last call that failed in this thread.
    function kofn_errmsg() result(words)
        character(:), allocatable :: words
        character(kind=c_char), pointer :: text(:)
        type(c_ptr) :: at
        integer :: i

        at = c_errmsg()
        call c_f_pointer(at, text, [c_strlen(at)])
        allocate(character(size(text)) :: words)
        do i = 1, size(text)
            words(i:i) = text(i)
        end do
    end function kofn_errmsg
end module kofn
