// Status 2 of a hook is an order: the client gives the model what is on stderr, and
// asks it again, at every Stop. Go's runtime has that status too, for where it gets no
// thread or no memory, and that may be before anything of this program runs. So the
// function through which every Go process ends makes a 2 a 1; markedWake passes.
//
// Of two functions of one name the linker takes the larger one where one is DUPOK.
// Tests fail should it not do so any more.

#include "textflag.h"

#ifdef GOOS_linux
#ifdef GOARCH_amd64
TEXT runtime·exit(SB),NOSPLIT|DUPOK,$0-4
	MOVL	code+0(FP), DI
	CMPL	DI, $2
	JNE	end
	MOVL	$1, DI
end:
	MOVL	$231, AX // exit_group
	SYSCALL
	RET
#endif
#ifdef GOARCH_arm64
TEXT runtime·exit(SB),NOSPLIT|NOFRAME|DUPOK,$0-4
	MOVW	code+0(FP), R0
	CMPW	$2, R0
	BNE	end
	MOVD	$1, R0
end:
	MOVD	$94, R8 // exit_group
	SVC
	RET
#endif
#endif

#ifdef GOOS_darwin
#ifdef GOARCH_amd64
TEXT runtime·exit_trampoline(SB),NOSPLIT|DUPOK,$0
	MOVL	0(DI), DI
	CMPL	DI, $2
	JNE	end
	MOVL	$1, DI
end:
	CALL	libc_exit(SB)
	MOVL	$0xf1, 0xf1 // crash
	RET
#endif
#ifdef GOARCH_arm64
TEXT runtime·exit_trampoline(SB),NOSPLIT|NOFRAME|DUPOK,$0
	MOVW	0(R0), R0
	CMPW	$2, R0
	BNE	end
	MOVD	$1, R0
end:
	BL	libc_exit(SB)
	MOVD	$1234, R0
	MOVD	$1002, R1
	MOVD	R0, (R1) // crash
#endif
#endif
