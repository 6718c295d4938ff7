! OpenMP threads read a table that the first one filled.
program table
  implicit none
  integer, parameter :: count = 262144
  integer(8), allocatable :: values(:)
  integer(8) :: total
  integer :: at
  allocate(values(count))
  values = 1 ! TABLE
  total = 0
!$omp parallel do reduction(+:total) num_threads(4)
  do at = 1, count
    total = total + values(at)
  end do
!$omp end parallel do
  print *, total
end program table
