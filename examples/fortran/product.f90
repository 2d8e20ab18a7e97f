! product.f90 -- multiplies with coded workers, and compares with matmul.
!
!     gfortran PREFIX/share/kofn/fortran/kofn.f90 product.f90 -lkofn -o product
!     ./product
program product
    use, intrinsic :: iso_c_binding
    use kofn
    implicit none
    real(c_double), target :: a(30, 20), b(20, 7), c(30, 7)

    call random_number(a)
    call random_number(b)
    call must(kofn_product(a, b, c, 'elastic:k=2', 4))
    call compare(c, matmul(a, b), 1e-12_c_double)
    call narrow()
    call sections()
    call job()
    call refused()
    print '(a)', 'ok'

contains

    subroutine must(st)
        integer(c_int), intent(in) :: st

        if (st == KOFN_OK) return
        print '(a)', kofn_errmsg()
        error stop 1
    end subroutine must

    subroutine compare(is, want, most)
        real(c_double), intent(in) :: is(:, :), want(:, :), most

        if (maxval(abs(is - want)) <= most * maxval(abs(want))) return
        print '(a)', 'a product differs from that of matmul'
        error stop 1
    end subroutine compare

    subroutine narrow()
        real(c_float), target :: x(30, 20), y(20, 7), z(30, 7)

        x = real(a, c_float)
        y = real(b, c_float)
        call must(kofn_product(x, y, z, 'mds:k=2', 3))
        call compare(real(z, c_double), real(matmul(x, y), c_double), &
            1e-4_c_double)
    end subroutine narrow

    ! Multiplies parts of arrays, whose columns are contiguous.
    subroutine sections()
        real(c_double), target :: part(40, 9)

        part = -1
        call must(kofn_product(a(3:12, 2:11), b(5:14, :), part(4:13, 2:8), &
            'polynomial:p=2,q=2', 5))
        call compare(part(4:13, 2:8), matmul(a(3:12, 2:11), b(5:14, :)), &
            1e-12_c_double)
        part(4:13, 2:8) = -1
        if (any(abs(part + 1) > 0)) error stop 'numbers beside the section have changed'
    end subroutine sections

    ! Keeps A on the workers, and multiplies it with a new B in every round.
    subroutine job()
        type(c_ptr) :: plan, port, run
        type(kofn_matrix) :: v
        integer :: round

        v = kofn_view(a)
        call must(kofn_plan_new(plan, kofn_problem_for(v, 7), 'elastic:k=2', 4, 1))
        call must(kofn_port_threads(port, 4))
        call must(kofn_open(run, plan, port))
        call must(kofn_place(run, v))
        do round = 1, 3
            call random_number(b)
            c = -1
            call must(kofn_round(run, kofn_view(b), kofn_view(c)))
            call compare(c, matmul(a, b), 1e-12_c_double)
        end do
        call must(kofn_finish(run))
        call kofn_close(run)
        call kofn_plan_free(plan)
    end subroutine job

    subroutine refused()
        real(c_double), target :: d(7, 30)

        if (kofn_product(a, b, d, 'elastic:k=2', 4) >= 0) &
            error stop 'a wrong shape was accepted'
        if (index(kofn_errmsg(), '30 x 7') == 0) error stop 'it says nothing'
        if (kofn_product(a(1:30:2, :), b, d(:, 1:15), 'uncoded', 2) >= 0) &
            error stop 'rows that are not contiguous were accepted'
    end subroutine refused
end program product
