; Made by `python -m tools.emulator_runtime` with clang 19.1.7 from the C beside it.
; b70e2e7276a452f9046bd9748c5e8541
%struct.Place = type { ptr, ptr, ptr, i64 }
%struct.Region = type { i64, i64, i64, i64, i64, %struct.Records }
%struct.Records = type { i64, i64, i64 }

define i1 @verify(ptr %0, i64 %1) {
  %3 = icmp eq ptr %0, null
  br i1 %3, label %43, label %4

4:
  %5 = getelementptr inbounds i8, ptr %0, i64 %1
  %6 = ptrtoint ptr %5 to i64
  %7 = icmp sgt i64 %1, 63
  br i1 %7, label %13, label %8

8:
  %9 = phi ptr [ %0, %4 ], [ %20, %19 ]
  %10 = ptrtoint ptr %9 to i64
  %11 = sub i64 %6, %10
  %12 = icmp sgt i64 %11, 7
  br i1 %12, label %27, label %24

13:
  %14 = phi ptr [ %20, %19 ], [ %0, %4 ]
  %15 = load <8 x i64>, ptr %14, align 1
  %16 = icmp ne <8 x i64> %15, <i64 72340172838076673, i64 72340172838076673, i64 72340172838076673, i64 72340172838076673, i64 72340172838076673, i64 72340172838076673, i64 72340172838076673, i64 72340172838076673>
  %17 = bitcast <8 x i1> %16 to i8
  %18 = icmp eq i8 %17, 0
  br i1 %18, label %19, label %43

19:
  %20 = getelementptr inbounds i8, ptr %14, i64 64
  %21 = ptrtoint ptr %20 to i64
  %22 = sub i64 %6, %21
  %23 = icmp sgt i64 %22, 63
  br i1 %23, label %13, label %8

24:
  %25 = phi ptr [ %9, %8 ], [ %32, %31 ]
  %26 = icmp ult ptr %25, %5
  br i1 %26, label %36, label %43

27:
  %28 = phi ptr [ %32, %31 ], [ %9, %8 ]
  %29 = load i64, ptr %28, align 1
  %30 = icmp eq i64 %29, 72340172838076673
  br i1 %30, label %31, label %43

31:
  %32 = getelementptr inbounds i8, ptr %28, i64 8
  %33 = ptrtoint ptr %32 to i64
  %34 = sub i64 %6, %33
  %35 = icmp sgt i64 %34, 7
  br i1 %35, label %27, label %24

36:
  %37 = phi ptr [ %40, %36 ], [ %25, %24 ]
  %38 = load i8, ptr %37, align 1
  %39 = icmp eq i8 %38, 1
  %40 = getelementptr inbounds i8, ptr %37, i64 1
  %41 = icmp ult ptr %40, %5
  %42 = select i1 %39, i1 %41, i1 false
  br i1 %42, label %36, label %43

43:
  %44 = phi i1 [ true, %2 ], [ true, %24 ], [ %39, %36 ], [ false, %27 ], [ false, %13 ]
  ret i1 %44
}

define void @mark(ptr %0, i64 %1) {
  %3 = icmp eq ptr %0, null
  br i1 %3, label %5, label %4

4:
  tail call void @llvm.memset.p0.i64(ptr align 1 %0, i8 1, i64 %1, i1 false)
  br label %5

5:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

define i1 @lane_read(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, i32 %5) {
  %7 = load i64, ptr %2, align 8
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %166, label %9

9:
  %10 = getelementptr inbounds i8, ptr %2, i64 16
  %11 = load i64, ptr %10, align 8
  %12 = and i64 %11, 255
  %13 = lshr i64 %3, %12
  %14 = shl i64 %13, 2
  %15 = add i64 %14, %7
  %16 = getelementptr inbounds i8, ptr %1, i64 20
  %17 = load i32, ptr %16, align 4
  %18 = getelementptr inbounds i8, ptr %1, i64 24
  store i32 %17, ptr %18, align 8
  %19 = inttoptr i64 %15 to ptr
  %20 = getelementptr inbounds i8, ptr %2, i64 8
  %21 = load i64, ptr %20, align 8
  %22 = add i64 %15, %21
  %23 = inttoptr i64 %22 to ptr
  %24 = shl i32 %17, 14
  %25 = load i64, ptr %10, align 8
  %26 = icmp ugt i64 %25, 255
  br i1 %26, label %32, label %27

27:
  %28 = getelementptr inbounds i8, ptr %0, i64 280
  %29 = load i64, ptr %28, align 8
  %30 = trunc i64 %29 to i32
  %31 = shl i32 %30, 14
  br label %32

32:
  %33 = phi i32 [ %31, %27 ], [ 0, %9 ]
  %34 = lshr i64 %4, %12
  %35 = or i32 %24, %5
  %36 = getelementptr inbounds i8, ptr %1, i64 28
  %37 = getelementptr inbounds i8, ptr %1, i64 192
  %38 = and i32 %5, 4096
  %39 = icmp eq i32 %38, 0
  %40 = getelementptr inbounds i8, ptr %0, i64 288
  %41 = or i32 %35, 8192
  %42 = and i32 %35, -12289
  %43 = tail call i64 @llvm.umax.i64(i64 %34, i64 1)
  br label %44

44:
  %45 = phi i64 [ 0, %32 ], [ %164, %162 ]
  %46 = getelementptr inbounds i32, ptr %19, i64 %45
  %47 = getelementptr inbounds i32, ptr %23, i64 %45
  %48 = load i32, ptr %46, align 4
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %89, label %50

50:
  %51 = icmp ult i32 %48, %33
  br i1 %51, label %79, label %52

52:
  %53 = and i32 %48, 2048
  %54 = icmp eq i32 %53, 0
  br i1 %54, label %59, label %55

55:
  %56 = lshr i32 %48, 14
  %57 = load i32, ptr %36, align 4
  %58 = icmp ult i32 %56, %57
  br i1 %58, label %89, label %79

59:
  %60 = xor i32 %48, %35
  %61 = and i32 %60, 992
  %62 = icmp eq i32 %61, 0
  br i1 %62, label %71, label %63

63:
  %64 = lshr i32 %48, 14
  %65 = lshr i32 %48, 5
  %66 = and i32 %65, 31
  %67 = zext nneg i32 %66 to i64
  %68 = getelementptr inbounds <32 x i32>, ptr %37, i64 0, i64 %67
  %69 = load i32, ptr %68, align 4
  %70 = icmp ult i32 %64, %69
  br i1 %70, label %89, label %79

71:
  %72 = icmp ult i32 %60, 16384
  br i1 %72, label %73, label %89

73:
  %74 = and i32 %60, 31
  %75 = or i32 %48, %5
  %76 = and i32 %75, 1024
  %77 = or disjoint i32 %74, %76
  %78 = icmp eq i32 %77, 0
  br i1 %78, label %89, label %79

79:
  %80 = and i32 %38, %48
  %81 = icmp eq i32 %80, 0
  br i1 %81, label %166, label %82

82:
  %83 = and i32 %48, 8192
  %84 = icmp eq i32 %83, 0
  br i1 %84, label %89, label %85

85:
  %86 = xor i32 %48, %5
  %87 = and i32 %86, 3040
  %88 = icmp eq i32 %87, 0
  br i1 %88, label %89, label %166

89:
  %90 = load i32, ptr %47, align 4
  %91 = icmp eq i32 %90, 0
  br i1 %91, label %162, label %92

92:
  %93 = icmp ult i32 %90, %33
  br i1 %93, label %135, label %94

94:
  %95 = and i32 %90, 2048
  %96 = icmp eq i32 %95, 0
  br i1 %96, label %101, label %97

97:
  %98 = lshr i32 %90, 14
  %99 = load i32, ptr %36, align 4
  %100 = icmp ult i32 %98, %99
  br i1 %100, label %121, label %142

101:
  %102 = xor i32 %90, %35
  %103 = and i32 %102, 992
  %104 = icmp eq i32 %103, 0
  br i1 %104, label %113, label %105

105:
  %106 = lshr i32 %90, 14
  %107 = lshr i32 %90, 5
  %108 = and i32 %107, 31
  %109 = zext nneg i32 %108 to i64
  %110 = getelementptr inbounds <32 x i32>, ptr %37, i64 0, i64 %109
  %111 = load i32, ptr %110, align 4
  %112 = icmp ult i32 %106, %111
  br i1 %112, label %121, label %142

113:
  %114 = icmp ult i32 %102, 16384
  br i1 %114, label %115, label %121

115:
  %116 = and i32 %102, 31
  %117 = or i32 %90, %5
  %118 = and i32 %117, 1024
  %119 = or disjoint i32 %116, %118
  %120 = icmp eq i32 %119, 0
  br i1 %120, label %121, label %142

121:
  %122 = and i32 %90, 12288
  %123 = icmp eq i32 %122, 4096
  %124 = or i1 %39, %123
  br i1 %124, label %162, label %125

125:
  %126 = lshr i32 %90, 14
  %127 = load i64, ptr %40, align 8
  %128 = trunc i64 %127 to i32
  %129 = icmp ult i32 %126, %128
  br i1 %129, label %162, label %130

130:
  %131 = xor i32 %90, %5
  %132 = and i32 %131, 3040
  %133 = icmp eq i32 %132, 0
  %134 = select i1 %133, i32 %41, i32 %42
  br label %162

135:
  %136 = and i32 %38, %90
  %137 = or i32 %90, %5
  %138 = and i32 %137, 8192
  %139 = icmp eq i32 %138, 0
  %140 = or disjoint i32 %136, 18432
  %141 = select i1 %139, i32 %140, i32 18432
  br label %162

142:
  %143 = and i32 %90, 4096
  %144 = or i32 %90, %5
  %145 = and i32 %144, 8192
  %146 = xor i32 %90, %5
  %147 = and i32 %146, 3040
  %148 = icmp eq i32 %147, 0
  br i1 %148, label %149, label %154

149:
  %150 = or disjoint i32 %143, -13313
  %151 = and i32 %150, %35
  %152 = or disjoint i32 %145, %151
  %153 = or disjoint i32 %152, 1024
  br label %162

154:
  %155 = icmp eq i32 %145, 0
  %156 = and i32 %143, %35
  %157 = select i1 %155, i32 %156, i32 0
  %158 = tail call i32 @llvm.umax.i32(i32 %90, i32 %35)
  %159 = and i32 %158, -16384
  %160 = or disjoint i32 %159, %157
  %161 = or disjoint i32 %160, 2048
  br label %162

162:
  %163 = phi i32 [ %134, %130 ], [ %35, %125 ], [ %35, %121 ], [ %141, %135 ], [ %153, %149 ], [ %161, %154 ], [ %35, %89 ]
  store i32 %163, ptr %47, align 4
  %164 = add nuw i64 %45, 1
  %165 = icmp eq i64 %164, %43
  br i1 %165, label %166, label %44

166:
  %167 = phi i1 [ true, %6 ], [ false, %79 ], [ false, %85 ], [ true, %162 ]
  ret i1 %167
}

define i1 @row_read(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, i32 %5, i32 %6) {
  %8 = load i64, ptr %2, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %109, label %10

10:
  %11 = getelementptr inbounds i8, ptr %2, i64 16
  %12 = load i64, ptr %11, align 8
  %13 = and i64 %12, 255
  %14 = lshr i64 %3, %13
  %15 = shl i64 %14, 2
  %16 = add i64 %15, %8
  %17 = getelementptr inbounds i8, ptr %1, i64 20
  %18 = load i32, ptr %17, align 4
  %19 = getelementptr inbounds i8, ptr %1, i64 24
  store i32 %18, ptr %19, align 8
  %20 = inttoptr i64 %16 to ptr
  %21 = getelementptr inbounds i8, ptr %2, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = add i64 %16, %22
  %24 = inttoptr i64 %23 to ptr
  %25 = shl i32 %18, 14
  %26 = load i64, ptr %11, align 8
  %27 = icmp ugt i64 %26, 255
  br i1 %27, label %33, label %28

28:
  %29 = getelementptr inbounds i8, ptr %0, i64 280
  %30 = load i64, ptr %29, align 8
  %31 = trunc i64 %30 to i32
  %32 = shl i32 %31, 14
  br label %33

33:
  %34 = phi i32 [ %32, %28 ], [ 0, %10 ]
  %35 = lshr i64 %4, %13
  %36 = icmp eq i64 %35, 0
  br i1 %36, label %109, label %37

37:
  %38 = getelementptr inbounds i8, ptr %1, i64 28
  %39 = load i32, ptr %38, align 4
  %40 = shl i32 %39, 14
  %41 = sub i32 %40, %34
  %42 = trunc i64 %12 to i32
  %43 = and i32 %42, 255
  %44 = or i32 %25, %6
  %45 = insertelement <8 x i32> poison, i32 %44, i64 0
  %46 = shufflevector <8 x i32> %45, <8 x i32> poison, <8 x i32> zeroinitializer
  %47 = sub i32 %5, %43
  %48 = insertelement <8 x i32> poison, i32 %47, i64 0
  %49 = shufflevector <8 x i32> %48, <8 x i32> poison, <8 x i32> zeroinitializer
  %50 = insertelement <8 x i32> poison, i32 %34, i64 0
  %51 = shufflevector <8 x i32> %50, <8 x i32> poison, <8 x i32> zeroinitializer
  %52 = insertelement <8 x i32> poison, i32 %41, i64 0
  %53 = shufflevector <8 x i32> %52, <8 x i32> poison, <8 x i32> zeroinitializer
  br label %54

54:
  %55 = phi i64 [ 0, %37 ], [ %107, %81 ]
  %56 = trunc i64 %55 to i32
  %57 = insertelement <8 x i32> poison, i32 %56, i64 0
  %58 = shufflevector <8 x i32> %57, <8 x i32> poison, <8 x i32> zeroinitializer
  %59 = or disjoint <8 x i32> %58, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %60 = lshr <8 x i32> %59, %49
  %61 = add <8 x i32> %60, %46
  %62 = getelementptr inbounds i32, ptr %20, i64 %55
  %63 = load <8 x i32>, ptr %62, align 4
  %64 = xor <8 x i32> %63, %61
  %65 = and <8 x i32> %64, <i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055>
  %66 = sub <8 x i32> %63, %51
  %67 = and <8 x i32> %64, <i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040>
  %68 = icmp uge <8 x i32> %66, %53
  %69 = icmp ne <8 x i32> %63, zeroinitializer
  %70 = and <8 x i1> %68, %69
  %71 = icmp ne <8 x i32> %65, zeroinitializer
  %72 = icmp ult <8 x i32> %64, <i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384>
  %73 = and <8 x i1> %71, %72
  %74 = icmp ne <8 x i32> %67, zeroinitializer
  %75 = icmp ult <8 x i32> %63, %51
  %76 = or <8 x i1> %74, %75
  %77 = select <8 x i1> %73, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i1> %76
  %78 = select <8 x i1> %70, <8 x i1> %77, <8 x i1> zeroinitializer
  %79 = bitcast <8 x i1> %78 to i8
  %80 = icmp eq i8 %79, 0
  br i1 %80, label %81, label %109

81:
  %82 = getelementptr inbounds i32, ptr %24, i64 %55
  %83 = load <8 x i32>, ptr %82, align 4
  %84 = xor <8 x i32> %83, %61
  %85 = icmp ugt <8 x i32> %84, <i32 16383, i32 16383, i32 16383, i32 16383, i32 16383, i32 16383, i32 16383, i32 16383>
  %86 = and <8 x i32> %84, <i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055>
  %87 = icmp eq <8 x i32> %86, zeroinitializer
  %88 = or <8 x i1> %87, %85
  %89 = icmp eq <8 x i32> %83, zeroinitializer
  %90 = sub <8 x i32> %83, %51
  %91 = icmp ult <8 x i32> %90, %53
  %92 = or <8 x i1> %91, %89
  %93 = and <8 x i32> %84, <i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040>
  %94 = icmp eq <8 x i32> %93, zeroinitializer
  %95 = icmp uge <8 x i32> %83, %51
  %96 = and <8 x i1> %94, %95
  %97 = select <8 x i1> %88, <8 x i1> %96, <8 x i1> zeroinitializer
  %98 = select <8 x i1> %92, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i1> %97
  %99 = tail call <8 x i32> @llvm.umax.v8i32(<8 x i32> %61, <8 x i32> %83)
  %100 = and <8 x i32> %99, <i32 -16384, i32 -16384, i32 -16384, i32 -16384, i32 -16384, i32 -16384, i32 -16384, i32 -16384>
  %101 = or disjoint <8 x i32> %100, <i32 2048, i32 2048, i32 2048, i32 2048, i32 2048, i32 2048, i32 2048, i32 2048>
  %102 = or <8 x i32> %61, <i32 1024, i32 1024, i32 1024, i32 1024, i32 1024, i32 1024, i32 1024, i32 1024>
  %103 = select <8 x i1> %96, <8 x i32> %102, <8 x i32> %101
  %104 = icmp ult <8 x i32> %83, %51
  %105 = select <8 x i1> %104, <8 x i32> <i32 18432, i32 18432, i32 18432, i32 18432, i32 18432, i32 18432, i32 18432, i32 18432>, <8 x i32> %103
  %106 = select <8 x i1> %98, <8 x i32> %61, <8 x i32> %105
  store <8 x i32> %106, ptr %82, align 4
  %107 = add i64 %55, 8
  %108 = icmp ult i64 %107, %35
  br i1 %108, label %54, label %109

109:
  %110 = phi i1 [ true, %7 ], [ true, %33 ], [ %80, %54 ], [ %80, %81 ]
  ret i1 %110
}

define i1 @row_write(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, i32 %5, i32 %6) {
  %8 = load i64, ptr %2, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %104, label %10

10:
  %11 = getelementptr inbounds i8, ptr %2, i64 16
  %12 = load i64, ptr %11, align 8
  %13 = and i64 %12, 255
  %14 = lshr i64 %3, %13
  %15 = shl i64 %14, 2
  %16 = add i64 %15, %8
  %17 = getelementptr inbounds i8, ptr %1, i64 20
  %18 = load i32, ptr %17, align 4
  %19 = getelementptr inbounds i8, ptr %1, i64 24
  store i32 %18, ptr %19, align 8
  %20 = inttoptr i64 %16 to ptr
  %21 = getelementptr inbounds i8, ptr %2, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = add i64 %16, %22
  %24 = inttoptr i64 %23 to ptr
  %25 = shl i32 %18, 14
  %26 = load i64, ptr %11, align 8
  %27 = icmp ugt i64 %26, 255
  br i1 %27, label %33, label %28

28:
  %29 = getelementptr inbounds i8, ptr %0, i64 280
  %30 = load i64, ptr %29, align 8
  %31 = trunc i64 %30 to i32
  %32 = shl i32 %31, 14
  br label %33

33:
  %34 = phi i32 [ %32, %28 ], [ 0, %10 ]
  %35 = lshr i64 %4, %13
  %36 = icmp eq i64 %35, 0
  br i1 %36, label %104, label %37

37:
  %38 = getelementptr inbounds i8, ptr %1, i64 28
  %39 = load i32, ptr %38, align 4
  %40 = shl i32 %39, 14
  %41 = sub i32 %40, %34
  %42 = trunc i64 %12 to i32
  %43 = and i32 %42, 255
  %44 = or i32 %25, %6
  %45 = insertelement <8 x i32> poison, i32 %44, i64 0
  %46 = shufflevector <8 x i32> %45, <8 x i32> poison, <8 x i32> zeroinitializer
  %47 = sub i32 %5, %43
  %48 = insertelement <8 x i32> poison, i32 %47, i64 0
  %49 = shufflevector <8 x i32> %48, <8 x i32> poison, <8 x i32> zeroinitializer
  %50 = insertelement <8 x i32> poison, i32 %34, i64 0
  %51 = shufflevector <8 x i32> %50, <8 x i32> poison, <8 x i32> zeroinitializer
  %52 = insertelement <8 x i32> poison, i32 %41, i64 0
  %53 = shufflevector <8 x i32> %52, <8 x i32> poison, <8 x i32> zeroinitializer
  br label %54

54:
  %55 = phi i64 [ 0, %37 ], [ %102, %101 ]
  %56 = trunc i64 %55 to i32
  %57 = insertelement <8 x i32> poison, i32 %56, i64 0
  %58 = shufflevector <8 x i32> %57, <8 x i32> poison, <8 x i32> zeroinitializer
  %59 = or disjoint <8 x i32> %58, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %60 = lshr <8 x i32> %59, %49
  %61 = add <8 x i32> %60, %46
  %62 = getelementptr inbounds i32, ptr %20, i64 %55
  %63 = getelementptr inbounds i32, ptr %24, i64 %55
  %64 = load <8 x i32>, ptr %62, align 4
  %65 = xor <8 x i32> %64, %61
  %66 = and <8 x i32> %65, <i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055>
  %67 = sub <8 x i32> %64, %51
  %68 = and <8 x i32> %65, <i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040>
  %69 = icmp uge <8 x i32> %67, %53
  %70 = icmp ne <8 x i32> %64, zeroinitializer
  %71 = and <8 x i1> %69, %70
  %72 = icmp ne <8 x i32> %66, zeroinitializer
  %73 = icmp ult <8 x i32> %65, <i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384>
  %74 = and <8 x i1> %72, %73
  %75 = icmp ne <8 x i32> %68, zeroinitializer
  %76 = icmp ult <8 x i32> %64, %51
  %77 = or <8 x i1> %75, %76
  %78 = select <8 x i1> %74, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i1> %77
  %79 = select <8 x i1> %71, <8 x i1> %78, <8 x i1> zeroinitializer
  %80 = bitcast <8 x i1> %79 to i8
  %81 = icmp eq i8 %80, 0
  br i1 %81, label %82, label %104

82:
  %83 = load <8 x i32>, ptr %63, align 4
  %84 = xor <8 x i32> %83, %61
  %85 = and <8 x i32> %84, <i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055, i32 1055>
  %86 = sub <8 x i32> %83, %51
  %87 = and <8 x i32> %84, <i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040, i32 3040>
  %88 = icmp uge <8 x i32> %86, %53
  %89 = icmp ne <8 x i32> %83, zeroinitializer
  %90 = and <8 x i1> %88, %89
  %91 = icmp ne <8 x i32> %85, zeroinitializer
  %92 = icmp ult <8 x i32> %84, <i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384, i32 16384>
  %93 = and <8 x i1> %91, %92
  %94 = icmp ne <8 x i32> %87, zeroinitializer
  %95 = icmp ult <8 x i32> %83, %51
  %96 = or <8 x i1> %94, %95
  %97 = select <8 x i1> %93, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i1> %96
  %98 = select <8 x i1> %90, <8 x i1> %97, <8 x i1> zeroinitializer
  %99 = bitcast <8 x i1> %98 to i8
  %100 = icmp eq i8 %99, 0
  br i1 %100, label %101, label %104

101:
  store <8 x i32> %61, ptr %62, align 4
  store <8 x i32> zeroinitializer, ptr %63, align 4
  %102 = add i64 %55, 8
  %103 = icmp ult i64 %102, %35
  br i1 %103, label %54, label %104

104:
  %105 = phi i1 [ true, %7 ], [ true, %33 ], [ true, %101 ], [ false, %54 ], [ false, %82 ]
  ret i1 %105
}

define i1 @load1(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %48, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %45, %40 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 1, i64 %5, i32 %7, i64 %21, i1 false, ptr %11)
  br i1 %24, label %25, label %47

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %31, label %28

28:
  %29 = load i8, ptr %26, align 1
  %30 = icmp eq i8 %29, 1
  br i1 %30, label %31, label %47

31:
  %32 = load ptr, ptr %15, align 8
  %33 = load i64, ptr %32, align 8
  %34 = icmp eq i64 %33, 0
  br i1 %34, label %40, label %35

35:
  %36 = load i64, ptr %16, align 8
  %37 = trunc i64 %21 to i32
  %38 = or i32 %37, %9
  %39 = tail call i1 @lane_read(ptr %0, ptr %1, ptr %32, i64 %36, i64 1, i32 %38)
  br i1 %39, label %40, label %47

40:
  %41 = getelementptr inbounds i8, ptr %6, i64 %20
  %42 = load ptr, ptr %11, align 8
  %43 = load i8, ptr %42, align 1
  store i8 %43, ptr %41, align 1
  %44 = add i32 %18, -1
  %45 = and i32 %44, %18
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %48, label %17

47:
  br label %48

48:
  %49 = phi i1 [ false, %47 ], [ true, %10 ], [ true, %40 ]
  ret i1 %49
}

define i1 @store1(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %49, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %47, %44 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 1, i64 %5, i32 %7, i64 %21, i1 true, ptr %11)
  br i1 %24, label %25, label %43

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %29, label %28

28:
  store i8 1, ptr %26, align 1
  br label %29

29:
  %30 = getelementptr inbounds i8, ptr %6, i64 %20
  %31 = load ptr, ptr %15, align 8
  %32 = load i64, ptr %31, align 8
  %33 = icmp eq i64 %32, 0
  %34 = load ptr, ptr %11, align 8
  br i1 %33, label %44, label %35

35:
  %36 = load i64, ptr %16, align 8
  %37 = trunc i64 %21 to i32
  %38 = or i32 %37, %9
  %39 = load i8, ptr %34, align 1
  %40 = load i8, ptr %30, align 1
  %41 = icmp eq i8 %40, %39
  %42 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %31, i64 %36, i64 1, i32 %38, i1 %41)
  br i1 %42, label %44, label %43

43:
  br label %49

44:
  %45 = load i8, ptr %30, align 1
  store i8 %45, ptr %34, align 1
  %46 = add i32 %18, -1
  %47 = and i32 %46, %18
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %49, label %17

49:
  %50 = phi i1 [ false, %43 ], [ true, %10 ], [ true, %44 ]
  ret i1 %50
}

define i1 @load2(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %50, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %47, %40 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 2, i64 %5, i32 %7, i64 %21, i1 false, ptr %11)
  br i1 %24, label %25, label %49

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %31, label %28

28:
  %29 = load i16, ptr %26, align 1
  %30 = icmp eq i16 %29, 257
  br i1 %30, label %31, label %49

31:
  %32 = load ptr, ptr %15, align 8
  %33 = load i64, ptr %32, align 8
  %34 = icmp eq i64 %33, 0
  br i1 %34, label %40, label %35

35:
  %36 = load i64, ptr %16, align 8
  %37 = trunc i64 %21 to i32
  %38 = or i32 %37, %9
  %39 = tail call i1 @lane_read(ptr %0, ptr %1, ptr %32, i64 %36, i64 2, i32 %38)
  br i1 %39, label %40, label %49

40:
  %41 = shl nuw nsw i32 %19, 1
  %42 = zext nneg i32 %41 to i64
  %43 = getelementptr inbounds i8, ptr %6, i64 %42
  %44 = load ptr, ptr %11, align 8
  %45 = load i16, ptr %44, align 1
  store i16 %45, ptr %43, align 1
  %46 = add i32 %18, -1
  %47 = and i32 %46, %18
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %50, label %17

49:
  br label %50

50:
  %51 = phi i1 [ false, %49 ], [ true, %10 ], [ true, %40 ]
  ret i1 %51
}

define i1 @store2(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %51, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %49, %46 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 2, i64 %5, i32 %7, i64 %21, i1 true, ptr %11)
  br i1 %24, label %25, label %45

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %29, label %28

28:
  store i16 257, ptr %26, align 1
  br label %29

29:
  %30 = shl nuw nsw i32 %19, 1
  %31 = zext nneg i32 %30 to i64
  %32 = getelementptr inbounds i8, ptr %6, i64 %31
  %33 = load ptr, ptr %15, align 8
  %34 = load i64, ptr %33, align 8
  %35 = icmp eq i64 %34, 0
  %36 = load ptr, ptr %11, align 8
  br i1 %35, label %46, label %37

37:
  %38 = load i64, ptr %16, align 8
  %39 = trunc i64 %21 to i32
  %40 = or i32 %39, %9
  %41 = load i16, ptr %36, align 1
  %42 = load i16, ptr %32, align 1
  %43 = icmp eq i16 %42, %41
  %44 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %33, i64 %38, i64 2, i32 %40, i1 %43)
  br i1 %44, label %46, label %45

45:
  br label %51

46:
  %47 = load i16, ptr %32, align 1
  store i16 %47, ptr %36, align 1
  %48 = add i32 %18, -1
  %49 = and i32 %48, %18
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %51, label %17

51:
  %52 = phi i1 [ false, %45 ], [ true, %10 ], [ true, %46 ]
  ret i1 %52
}

define i1 @load4(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %50, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %47, %40 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 4, i64 %5, i32 %7, i64 %21, i1 false, ptr %11)
  br i1 %24, label %25, label %49

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %31, label %28

28:
  %29 = load i32, ptr %26, align 1
  %30 = icmp eq i32 %29, 16843009
  br i1 %30, label %31, label %49

31:
  %32 = load ptr, ptr %15, align 8
  %33 = load i64, ptr %32, align 8
  %34 = icmp eq i64 %33, 0
  br i1 %34, label %40, label %35

35:
  %36 = load i64, ptr %16, align 8
  %37 = trunc i64 %21 to i32
  %38 = or i32 %37, %9
  %39 = tail call i1 @lane_read(ptr %0, ptr %1, ptr %32, i64 %36, i64 4, i32 %38)
  br i1 %39, label %40, label %49

40:
  %41 = shl nuw nsw i32 %19, 2
  %42 = zext nneg i32 %41 to i64
  %43 = getelementptr inbounds i8, ptr %6, i64 %42
  %44 = load ptr, ptr %11, align 8
  %45 = load i32, ptr %44, align 1
  store i32 %45, ptr %43, align 1
  %46 = add i32 %18, -1
  %47 = and i32 %46, %18
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %50, label %17

49:
  br label %50

50:
  %51 = phi i1 [ false, %49 ], [ true, %10 ], [ true, %40 ]
  ret i1 %51
}

define i1 @store4(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %51, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %49, %46 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 4, i64 %5, i32 %7, i64 %21, i1 true, ptr %11)
  br i1 %24, label %25, label %45

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %29, label %28

28:
  store i32 16843009, ptr %26, align 1
  br label %29

29:
  %30 = shl nuw nsw i32 %19, 2
  %31 = zext nneg i32 %30 to i64
  %32 = getelementptr inbounds i8, ptr %6, i64 %31
  %33 = load ptr, ptr %15, align 8
  %34 = load i64, ptr %33, align 8
  %35 = icmp eq i64 %34, 0
  %36 = load ptr, ptr %11, align 8
  br i1 %35, label %46, label %37

37:
  %38 = load i64, ptr %16, align 8
  %39 = trunc i64 %21 to i32
  %40 = or i32 %39, %9
  %41 = load i32, ptr %36, align 1
  %42 = load i32, ptr %32, align 1
  %43 = icmp eq i32 %42, %41
  %44 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %33, i64 %38, i64 4, i32 %40, i1 %43)
  br i1 %44, label %46, label %45

45:
  br label %51

46:
  %47 = load i32, ptr %32, align 1
  store i32 %47, ptr %36, align 1
  %48 = add i32 %18, -1
  %49 = and i32 %48, %18
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %51, label %17

51:
  %52 = phi i1 [ false, %45 ], [ true, %10 ], [ true, %46 ]
  ret i1 %52
}

define i1 @load8(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %50, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %47, %40 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 8, i64 %5, i32 %7, i64 %21, i1 false, ptr %11)
  br i1 %24, label %25, label %49

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %31, label %28

28:
  %29 = load i64, ptr %26, align 1
  %30 = icmp eq i64 %29, 72340172838076673
  br i1 %30, label %31, label %49

31:
  %32 = load ptr, ptr %15, align 8
  %33 = load i64, ptr %32, align 8
  %34 = icmp eq i64 %33, 0
  br i1 %34, label %40, label %35

35:
  %36 = load i64, ptr %16, align 8
  %37 = trunc i64 %21 to i32
  %38 = or i32 %37, %9
  %39 = tail call i1 @lane_read(ptr %0, ptr %1, ptr %32, i64 %36, i64 8, i32 %38)
  br i1 %39, label %40, label %49

40:
  %41 = shl nuw nsw i32 %19, 3
  %42 = zext nneg i32 %41 to i64
  %43 = getelementptr inbounds i8, ptr %6, i64 %42
  %44 = load ptr, ptr %11, align 8
  %45 = load i64, ptr %44, align 1
  store i64 %45, ptr %43, align 1
  %46 = add i32 %18, -1
  %47 = and i32 %46, %18
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %50, label %17

49:
  br label %50

50:
  %51 = phi i1 [ false, %49 ], [ true, %10 ], [ true, %40 ]
  ret i1 %51
}

define i1 @store8(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %51, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %49, %46 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 8, i64 %5, i32 %7, i64 %21, i1 true, ptr %11)
  br i1 %24, label %25, label %45

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %29, label %28

28:
  store i64 72340172838076673, ptr %26, align 1
  br label %29

29:
  %30 = shl nuw nsw i32 %19, 3
  %31 = zext nneg i32 %30 to i64
  %32 = getelementptr inbounds i8, ptr %6, i64 %31
  %33 = load ptr, ptr %15, align 8
  %34 = load i64, ptr %33, align 8
  %35 = icmp eq i64 %34, 0
  %36 = load ptr, ptr %11, align 8
  br i1 %35, label %46, label %37

37:
  %38 = load i64, ptr %16, align 8
  %39 = trunc i64 %21 to i32
  %40 = or i32 %39, %9
  %41 = load i64, ptr %36, align 1
  %42 = load i64, ptr %32, align 1
  %43 = icmp eq i64 %42, %41
  %44 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %33, i64 %38, i64 8, i32 %40, i1 %43)
  br i1 %44, label %46, label %45

45:
  br label %51

46:
  %47 = load i64, ptr %32, align 1
  store i64 %47, ptr %36, align 1
  %48 = add i32 %18, -1
  %49 = and i32 %48, %18
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %51, label %17

51:
  %52 = phi i1 [ false, %45 ], [ true, %10 ], [ true, %46 ]
  ret i1 %52
}

define i1 @load16(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %53, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %50, %44 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 16, i64 %5, i32 %7, i64 %21, i1 false, ptr %11)
  br i1 %24, label %25, label %52

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %35, label %28

28:
  %29 = load i64, ptr %26, align 1
  %30 = icmp eq i64 %29, 72340172838076673
  br i1 %30, label %31, label %52

31:
  %32 = getelementptr i8, ptr %26, i64 8
  %33 = load i64, ptr %32, align 1
  %34 = icmp eq i64 %33, 72340172838076673
  br i1 %34, label %35, label %52

35:
  %36 = load ptr, ptr %15, align 8
  %37 = load i64, ptr %36, align 8
  %38 = icmp eq i64 %37, 0
  br i1 %38, label %44, label %39

39:
  %40 = load i64, ptr %16, align 8
  %41 = trunc i64 %21 to i32
  %42 = or i32 %41, %9
  %43 = tail call i1 @lane_read(ptr %0, ptr %1, ptr %36, i64 %40, i64 16, i32 %42)
  br i1 %43, label %44, label %52

44:
  %45 = shl nuw nsw i32 %19, 4
  %46 = zext nneg i32 %45 to i64
  %47 = getelementptr inbounds i8, ptr %6, i64 %46
  %48 = load ptr, ptr %11, align 8
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %47, ptr align 1 %48, i64 16, i1 false)
  %49 = add i32 %18, -1
  %50 = and i32 %49, %18
  %51 = icmp eq i32 %50, 0
  br i1 %51, label %53, label %17

52:
  br label %53

53:
  %54 = phi i1 [ false, %52 ], [ true, %10 ], [ true, %44 ]
  ret i1 %54
}

define i1 @store16(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9) {
  %11 = alloca %struct.Place, align 8
  %12 = icmp eq i32 %4, 0
  br i1 %12, label %59, label %13

13:
  %14 = getelementptr inbounds i8, ptr %11, i64 8
  %15 = getelementptr inbounds i8, ptr %11, i64 16
  %16 = getelementptr inbounds i8, ptr %11, i64 24
  br label %17

17:
  %18 = phi i32 [ %4, %13 ], [ %57, %55 ]
  %19 = tail call i32 @llvm.cttz.i32(i32 %18, i1 true)
  %20 = zext nneg i32 %19 to i64
  %21 = add i64 %20, %8
  %22 = getelementptr inbounds i64, ptr %3, i64 %20
  %23 = load i64, ptr %22, align 8
  %24 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %23, i64 16, i64 %5, i32 %7, i64 %21, i1 true, ptr %11)
  br i1 %24, label %25, label %54

25:
  %26 = load ptr, ptr %14, align 8
  %27 = icmp eq ptr %26, null
  br i1 %27, label %29, label %28

28:
  tail call void @llvm.memset.p0.i64(ptr align 1 %26, i8 1, i64 16, i1 false)
  br label %29

29:
  %30 = shl nuw nsw i32 %19, 4
  %31 = zext nneg i32 %30 to i64
  %32 = getelementptr inbounds i8, ptr %6, i64 %31
  %33 = load ptr, ptr %15, align 8
  %34 = load i64, ptr %33, align 8
  %35 = icmp eq i64 %34, 0
  %36 = load ptr, ptr %11, align 8
  br i1 %35, label %55, label %37

37:
  %38 = load i64, ptr %16, align 8
  %39 = trunc i64 %21 to i32
  br label %40

40:
  %41 = phi i1 [ true, %37 ], [ false, %40 ]
  %42 = phi i64 [ 0, %37 ], [ 8, %40 ]
  %43 = phi i64 [ 0, %37 ], [ %49, %40 ]
  %44 = getelementptr inbounds i8, ptr %36, i64 %42
  %45 = load i64, ptr %44, align 1
  %46 = getelementptr inbounds i8, ptr %32, i64 %42
  %47 = load i64, ptr %46, align 1
  %48 = xor i64 %47, %45
  %49 = or i64 %48, %43
  br i1 %41, label %40, label %50

50:
  %51 = or i32 %39, %9
  %52 = icmp eq i64 %49, 0
  %53 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %33, i64 %38, i64 16, i32 %51, i1 %52)
  br i1 %53, label %55, label %54

54:
  br label %59

55:
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %36, ptr align 1 %32, i64 16, i1 false)
  %56 = add i32 %18, -1
  %57 = and i32 %56, %18
  %58 = icmp eq i32 %57, 0
  br i1 %58, label %59, label %17

59:
  %60 = phi i1 [ false, %54 ], [ true, %10 ], [ true, %55 ]
  ret i1 %60
}

define i1 @atomic4(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9, ptr %10, ptr %11, i32 %12) {
  %14 = alloca %struct.Place, align 8
  %15 = icmp eq i32 %4, 0
  br i1 %15, label %126, label %16

16:
  %17 = getelementptr inbounds i8, ptr %14, i64 8
  %18 = icmp eq i32 %12, 7
  %19 = getelementptr inbounds i8, ptr %14, i64 16
  %20 = getelementptr inbounds i8, ptr %14, i64 24
  br label %21

21:
  %22 = phi i32 [ %4, %16 ], [ %123, %118 ]
  %23 = tail call i32 @llvm.cttz.i32(i32 %22, i1 true)
  %24 = zext nneg i32 %23 to i64
  %25 = add i64 %24, %8
  %26 = getelementptr inbounds i64, ptr %3, i64 %24
  %27 = load i64, ptr %26, align 8
  %28 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %27, i64 4, i64 %5, i32 %7, i64 %25, i1 true, ptr %14)
  br i1 %28, label %29, label %125

29:
  %30 = load ptr, ptr %17, align 8
  %31 = icmp eq ptr %30, null
  br i1 %31, label %37, label %32

32:
  br i1 %18, label %36, label %33

33:
  %34 = load i32, ptr %30, align 1
  %35 = icmp eq i32 %34, 16843009
  br i1 %35, label %37, label %125

36:
  store i32 16843009, ptr %30, align 1
  br label %37

37:
  %38 = load ptr, ptr %19, align 8
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, 0
  br i1 %40, label %46, label %41

41:
  %42 = load i64, ptr %20, align 8
  %43 = trunc i64 %25 to i32
  %44 = or i32 %43, %9
  %45 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %38, i64 %42, i64 4, i32 %44, i1 false)
  br i1 %45, label %46, label %125

46:
  %47 = load ptr, ptr %14, align 8
  %48 = load i32, ptr %47, align 1
  %49 = zext i32 %48 to i64
  %50 = shl nuw nsw i32 %23, 2
  %51 = zext nneg i32 %50 to i64
  %52 = getelementptr inbounds i8, ptr %10, i64 %51
  %53 = load i32, ptr %52, align 1
  %54 = zext i32 %53 to i64
  %55 = getelementptr inbounds i8, ptr %11, i64 %51
  %56 = load i32, ptr %55, align 1
  switch i32 %7, label %60 [
    i32 0, label %61
    i32 3, label %57
  ]

57:
  %58 = load i64, ptr %26, align 8
  %59 = icmp ult i64 %58, 140668768878592
  br label %61

60:
  br label %61

61:
  %62 = phi i1 [ true, %46 ], [ %59, %57 ], [ false, %60 ]
  switch i32 %12, label %118 [
    i32 0, label %63
    i32 1, label %65
    i32 2, label %67
    i32 3, label %69
    i32 4, label %71
    i32 5, label %75
    i32 6, label %80
    i32 8, label %83
    i32 9, label %85
    i32 10, label %87
    i32 11, label %90
    i32 12, label %93
  ]

63:
  %64 = add nuw nsw i64 %54, %49
  br label %118

65:
  %66 = and i64 %54, %49
  br label %118

67:
  %68 = or i64 %54, %49
  br label %118

69:
  %70 = xor i64 %54, %49
  br label %118

71:
  %72 = icmp ult i32 %48, %53
  %73 = add nuw nsw i64 %49, 1
  %74 = select i1 %72, i64 %73, i64 0
  br label %118

75:
  %76 = add i32 %48, -1
  %77 = icmp ult i32 %76, %53
  %78 = add nsw i64 %49, -1
  %79 = select i1 %77, i64 %78, i64 %54
  br label %118

80:
  %81 = icmp eq i32 %48, %56
  %82 = select i1 %81, i64 %54, i64 %49
  br label %118

83:
  %84 = tail call i64 @llvm.umin.i64(i64 %54, i64 %49)
  br label %118

85:
  %86 = tail call i64 @llvm.umax.i64(i64 %54, i64 %49)
  br label %118

87:
  %88 = tail call i32 @llvm.smin.i32(i32 %53, i32 %48)
  %89 = zext i32 %88 to i64
  br label %118

90:
  %91 = tail call i32 @llvm.smax.i32(i32 %53, i32 %48)
  %92 = zext i32 %91 to i64
  br label %118

93:
  %94 = and i32 %48, 2139095040
  %95 = icmp eq i32 %94, 0
  %96 = and i1 %95, %62
  %97 = and i32 %48, -2147483648
  %98 = select i1 %96, i32 %97, i32 %48
  %99 = bitcast i32 %98 to float
  %100 = and i32 %53, 2139095040
  %101 = icmp eq i32 %100, 0
  %102 = and i1 %101, %62
  %103 = and i32 %53, -2147483648
  %104 = select i1 %102, i32 %103, i32 %53
  %105 = bitcast i32 %104 to float
  %106 = fadd float %99, %105
  %107 = fcmp uno float %106, 0.000000e+00
  br i1 %107, label %115, label %108

108:
  %109 = bitcast float %106 to i32
  %110 = and i32 %109, 2139095040
  %111 = icmp eq i32 %110, 0
  %112 = and i1 %62, %111
  %113 = and i32 %109, -2147483648
  %114 = select i1 %112, i32 %113, i32 %109
  br label %115

115:
  %116 = phi i32 [ %114, %108 ], [ 2147483647, %93 ]
  %117 = zext i32 %116 to i64
  br label %118

118:
  %119 = phi i64 [ %92, %90 ], [ %89, %87 ], [ %86, %85 ], [ %84, %83 ], [ %82, %80 ], [ %79, %75 ], [ %74, %71 ], [ %70, %69 ], [ %68, %67 ], [ %66, %65 ], [ %64, %63 ], [ %117, %115 ], [ %54, %61 ]
  %120 = trunc i64 %119 to i32
  store i32 %120, ptr %47, align 1
  %121 = getelementptr inbounds i8, ptr %6, i64 %51
  store i32 %48, ptr %121, align 1
  %122 = add i32 %22, -1
  %123 = and i32 %122, %22
  %124 = icmp eq i32 %123, 0
  br i1 %124, label %126, label %21

125:
  br label %126

126:
  %127 = phi i1 [ false, %125 ], [ true, %13 ], [ true, %118 ]
  ret i1 %127
}

define i1 @atomic8(ptr %0, ptr %1, ptr %2, ptr %3, i32 %4, i64 %5, ptr %6, i32 %7, i64 %8, i32 %9, ptr %10, ptr %11, i32 %12) {
  %14 = alloca %struct.Place, align 8
  %15 = icmp eq i32 %4, 0
  br i1 %15, label %100, label %16

16:
  %17 = getelementptr inbounds i8, ptr %14, i64 8
  %18 = icmp eq i32 %12, 7
  %19 = getelementptr inbounds i8, ptr %14, i64 16
  %20 = getelementptr inbounds i8, ptr %14, i64 24
  br label %21

21:
  %22 = phi i32 [ %4, %16 ], [ %97, %93 ]
  %23 = tail call i32 @llvm.cttz.i32(i32 %22, i1 true)
  %24 = zext nneg i32 %23 to i64
  %25 = add i64 %24, %8
  %26 = getelementptr inbounds i64, ptr %3, i64 %24
  %27 = load i64, ptr %26, align 8
  %28 = call fastcc i1 @resolve(ptr %0, ptr %2, i64 %27, i64 8, i64 %5, i32 %7, i64 %25, i1 true, ptr %14)
  br i1 %28, label %29, label %99

29:
  %30 = load ptr, ptr %17, align 8
  %31 = icmp eq ptr %30, null
  br i1 %31, label %37, label %32

32:
  br i1 %18, label %36, label %33

33:
  %34 = load i64, ptr %30, align 1
  %35 = icmp eq i64 %34, 72340172838076673
  br i1 %35, label %37, label %99

36:
  store i64 72340172838076673, ptr %30, align 1
  br label %37

37:
  %38 = load ptr, ptr %19, align 8
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, 0
  br i1 %40, label %46, label %41

41:
  %42 = load i64, ptr %20, align 8
  %43 = trunc i64 %25 to i32
  %44 = or i32 %43, %9
  %45 = tail call fastcc i1 @lane_write(ptr %0, ptr %1, ptr %38, i64 %42, i64 8, i32 %44, i1 false)
  br i1 %45, label %46, label %99

46:
  %47 = load ptr, ptr %14, align 8
  %48 = load i64, ptr %47, align 1
  %49 = shl nuw nsw i32 %23, 3
  %50 = zext nneg i32 %49 to i64
  %51 = getelementptr inbounds i8, ptr %10, i64 %50
  %52 = load i64, ptr %51, align 1
  switch i32 %12, label %93 [
    i32 0, label %53
    i32 1, label %55
    i32 2, label %57
    i32 3, label %59
    i32 4, label %61
    i32 5, label %65
    i32 6, label %68
    i32 8, label %73
    i32 9, label %75
    i32 10, label %77
    i32 11, label %79
    i32 12, label %81
  ]

53:
  %54 = add i64 %52, %48
  br label %93

55:
  %56 = and i64 %52, %48
  br label %93

57:
  %58 = or i64 %52, %48
  br label %93

59:
  %60 = xor i64 %52, %48
  br label %93

61:
  %62 = icmp ult i64 %48, %52
  %63 = add i64 %48, 1
  %64 = select i1 %62, i64 %63, i64 0
  br label %93

65:
  %66 = add i64 %48, -1
  %67 = tail call i64 @llvm.umin.i64(i64 %66, i64 %52)
  br label %93

68:
  %69 = getelementptr inbounds i8, ptr %11, i64 %50
  %70 = load i64, ptr %69, align 1
  %71 = icmp eq i64 %48, %70
  %72 = select i1 %71, i64 %52, i64 %48
  br label %93

73:
  %74 = tail call i64 @llvm.umin.i64(i64 %52, i64 %48)
  br label %93

75:
  %76 = tail call i64 @llvm.umax.i64(i64 %52, i64 %48)
  br label %93

77:
  %78 = tail call i64 @llvm.smin.i64(i64 %52, i64 %48)
  br label %93

79:
  %80 = tail call i64 @llvm.smax.i64(i64 %52, i64 %48)
  br label %93

81:
  %82 = bitcast i64 %48 to double
  %83 = fcmp uno double %82, 0.000000e+00
  br i1 %83, label %84, label %86

84:
  %85 = or i64 %48, 2251799813685248
  br label %93

86:
  %87 = bitcast i64 %52 to double
  %88 = fcmp uno double %87, 0.000000e+00
  %89 = or i64 %52, 2251799813685248
  %90 = fadd double %82, %87
  %91 = bitcast double %90 to i64
  %92 = select i1 %88, i64 %89, i64 %91
  br label %93

93:
  %94 = phi i64 [ %80, %79 ], [ %78, %77 ], [ %76, %75 ], [ %74, %73 ], [ %72, %68 ], [ %67, %65 ], [ %64, %61 ], [ %60, %59 ], [ %58, %57 ], [ %56, %55 ], [ %54, %53 ], [ %52, %46 ], [ %85, %84 ], [ %92, %86 ]
  store i64 %94, ptr %47, align 1
  %95 = getelementptr inbounds i8, ptr %6, i64 %50
  store i64 %48, ptr %95, align 1
  %96 = add i32 %22, -1
  %97 = and i32 %96, %22
  %98 = icmp eq i32 %97, 0
  br i1 %98, label %100, label %21

99:
  br label %100

100:
  %101 = phi i1 [ false, %99 ], [ true, %13 ], [ true, %93 ]
  ret i1 %101
}

define i64 @run(ptr %0, i64 %1, i64 %2) {
  %4 = icmp ult i64 %1, %2
  br i1 %4, label %5, label %341

5:
  %6 = getelementptr inbounds i8, ptr %0, i64 272
  %7 = getelementptr inbounds i8, ptr %0, i64 280
  %8 = getelementptr inbounds i8, ptr %0, i64 120
  %9 = getelementptr inbounds i8, ptr %0, i64 208
  %10 = getelementptr inbounds i8, ptr %0, i64 160
  %11 = getelementptr inbounds i8, ptr %0, i64 216
  %12 = getelementptr inbounds i8, ptr %0, i64 168
  %13 = getelementptr inbounds i8, ptr %0, i64 176
  %14 = getelementptr inbounds i8, ptr %0, i64 32
  %15 = getelementptr inbounds i8, ptr %0, i64 40
  %16 = getelementptr inbounds i8, ptr %0, i64 48
  %17 = getelementptr inbounds i8, ptr %0, i64 64
  %18 = getelementptr inbounds i8, ptr %0, i64 88
  %19 = getelementptr inbounds i8, ptr %0, i64 72
  %20 = getelementptr inbounds i8, ptr %0, i64 288
  %21 = getelementptr inbounds i8, ptr %0, i64 80
  %22 = getelementptr inbounds i8, ptr %0, i64 96
  %23 = getelementptr inbounds i8, ptr %0, i64 128
  %24 = getelementptr inbounds i8, ptr %0, i64 248
  %25 = getelementptr inbounds i8, ptr %0, i64 240
  %26 = load i64, ptr %6, align 8
  br label %27

27:
  %28 = phi i64 [ %26, %5 ], [ %315, %338 ]
  %29 = phi i64 [ %1, %5 ], [ %339, %338 ]
  %30 = icmp eq i64 %28, 0
  br i1 %30, label %36, label %31

31:
  %32 = load i64, ptr %7, align 8
  %33 = icmp ugt i64 %32, 131071
  br i1 %33, label %34, label %36

34:
  %35 = getelementptr inbounds i8, ptr %0, i64 344
  store i64 1, ptr %35, align 8
  br label %341

36:
  %37 = load ptr, ptr %8, align 8
  %38 = getelementptr inbounds i64, ptr %37, i64 %29
  %39 = load i64, ptr %38, align 8
  %40 = load i64, ptr %9, align 8
  %41 = udiv i64 %39, %40
  %42 = urem i64 %39, %40
  store i64 %42, ptr %10, align 8
  %43 = load i64, ptr %11, align 8
  %44 = urem i64 %41, %43
  store i64 %44, ptr %12, align 8
  %45 = udiv i64 %41, %43
  store i64 %45, ptr %13, align 8
  %46 = load ptr, ptr %14, align 8
  %47 = load i64, ptr %15, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %46, i8 0, i64 %47, i1 false)
  %48 = load ptr, ptr %16, align 8
  %49 = icmp eq ptr %48, null
  br i1 %49, label %52, label %50

50:
  %51 = load i64, ptr %15, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %48, i8 0, i64 %51, i1 false)
  br label %52

52:
  %53 = load ptr, ptr %17, align 8
  %54 = icmp eq ptr %53, null
  br i1 %54, label %60, label %55

55:
  %56 = load i64, ptr %18, align 8
  %57 = shl i64 %56, 5
  %58 = load i64, ptr %19, align 8
  %59 = mul i64 %57, %58
  tail call void @llvm.memset.p0.i64(ptr align 1 %53, i8 0, i64 %59, i1 false)
  br label %60

60:
  %61 = load i64, ptr %7, align 8
  %62 = trunc i64 %61 to i32
  %63 = load i64, ptr %6, align 8
  %64 = icmp eq i64 %63, 0
  br i1 %64, label %66, label %65

65:
  store i64 %61, ptr %20, align 8
  br label %66

66:
  %67 = load i64, ptr %18, align 8
  %68 = icmp eq i64 %67, 0
  br i1 %68, label %313, label %69

69:
  %70 = insertelement <32 x i32> poison, i32 %62, i64 0
  %71 = shufflevector <32 x i32> %70, <32 x i32> poison, <32 x i32> zeroinitializer
  br label %72

72:
  %73 = phi i64 [ 0, %69 ], [ %96, %95 ]
  %74 = load ptr, ptr %21, align 8
  %75 = load i64, ptr %22, align 8
  %76 = mul i64 %75, %73
  %77 = getelementptr inbounds i8, ptr %74, i64 %76
  tail call void @llvm.memset.p0.i64(ptr align 64 %77, i8 0, i64 320, i1 false)
  %78 = load ptr, ptr %23, align 8
  %79 = getelementptr inbounds i32, ptr %78, i64 %73
  %80 = load i32, ptr %79, align 4
  store i32 %80, ptr %77, align 64
  %81 = trunc i64 %73 to i32
  %82 = getelementptr inbounds i8, ptr %77, i64 16
  store i32 %81, ptr %82, align 16
  %83 = load i64, ptr %6, align 8
  %84 = icmp eq i64 %83, 0
  br i1 %84, label %95, label %85

85:
  %86 = getelementptr inbounds i8, ptr %77, i64 28
  store i32 %62, ptr %86, align 4
  %87 = getelementptr inbounds i8, ptr %77, i64 20
  store i32 %62, ptr %87, align 4
  %88 = load i64, ptr %18, align 8
  %89 = trunc i64 %88 to i32
  %90 = insertelement <32 x i32> poison, i32 %89, i64 0
  %91 = shufflevector <32 x i32> %90, <32 x i32> poison, <32 x i32> zeroinitializer
  %92 = icmp ult <32 x i32> %91, <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 32>
  %93 = select <32 x i1> %92, <32 x i32> <i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647, i32 2147483647>, <32 x i32> %71
  %94 = getelementptr inbounds i8, ptr %77, i64 192
  store <32 x i32> %93, ptr %94, align 64
  br label %95

95:
  %96 = add nuw i64 %73, 1
  %97 = load i64, ptr %18, align 8
  %98 = icmp ult i64 %96, %97
  br i1 %98, label %72, label %99

99:
  %100 = icmp eq i64 %97, 0
  br i1 %100, label %313, label %101

101:
  %102 = phi i64 [ %157, %156 ], [ 0, %99 ]
  %103 = phi i64 [ %158, %156 ], [ 0, %99 ]
  %104 = phi i64 [ %159, %156 ], [ 0, %99 ]
  %105 = load ptr, ptr %21, align 8
  %106 = load i64, ptr %22, align 8
  %107 = mul i64 %106, %103
  %108 = getelementptr inbounds i8, ptr %105, i64 %107
  %109 = getelementptr inbounds i8, ptr %108, i64 4
  %110 = load i32, ptr %109, align 4
  %111 = icmp eq i32 %110, 0
  br i1 %111, label %112, label %145

112:
  %113 = trunc i64 %103 to i32
  %114 = tail call i32 @warp(ptr %0, ptr %108, i32 %113)
  store i32 %114, ptr %109, align 4
  switch i32 %114, label %145 [
    i32 3, label %341
    i32 2, label %115
  ]

115:
  %116 = load i64, ptr %6, align 8
  %117 = icmp eq i64 %116, 0
  br i1 %117, label %145, label %118

118:
  %119 = load ptr, ptr %21, align 8
  %120 = load i64, ptr %22, align 8
  %121 = mul i64 %120, %103
  %122 = getelementptr inbounds i8, ptr %119, i64 %121
  %123 = getelementptr inbounds i8, ptr %122, i64 24
  %124 = load i32, ptr %123, align 8
  %125 = getelementptr inbounds i8, ptr %122, i64 192
  %126 = load <32 x i32>, ptr %125, align 64
  %127 = extractelement <32 x i32> %126, i64 %103
  %128 = icmp ult i32 %124, %127
  br i1 %128, label %129, label %145

129:
  %130 = load i64, ptr %18, align 8
  %131 = icmp eq i64 %130, 0
  br i1 %131, label %145, label %132

132:
  %133 = phi i64 [ %140, %132 ], [ 0, %129 ]
  %134 = load ptr, ptr %21, align 8
  %135 = load i64, ptr %22, align 8
  %136 = mul i64 %135, %133
  %137 = getelementptr inbounds i8, ptr %134, i64 %136
  %138 = getelementptr inbounds i8, ptr %137, i64 192
  %139 = getelementptr inbounds i32, ptr %138, i64 %103
  store i32 2147483647, ptr %139, align 4
  %140 = add nuw i64 %133, 1
  %141 = load i64, ptr %18, align 8
  %142 = icmp ult i64 %140, %141
  br i1 %142, label %132, label %143

143:
  %144 = load i32, ptr %109, align 4
  br label %145

145:
  %146 = phi i32 [ %144, %143 ], [ %110, %101 ], [ 2, %115 ], [ %114, %112 ], [ 2, %118 ], [ 2, %129 ]
  %147 = icmp eq i32 %146, 1
  %148 = zext i1 %147 to i64
  %149 = add i64 %102, %148
  %150 = icmp ne i32 %146, 2
  %151 = zext i1 %150 to i64
  %152 = add i64 %104, %151
  %153 = add nuw i64 %103, 1
  %154 = load i64, ptr %18, align 8
  %155 = icmp ult i64 %153, %154
  br i1 %155, label %156, label %160

156:
  %157 = phi i64 [ %149, %145 ], [ 0, %311 ]
  %158 = phi i64 [ %153, %145 ], [ 0, %311 ]
  %159 = phi i64 [ %152, %145 ], [ 0, %311 ]
  br label %101

160:
  %161 = icmp eq i64 %149, 0
  br i1 %161, label %313, label %162

162:
  %163 = icmp eq i64 %154, 0
  br i1 %163, label %341, label %164

164:
  %165 = load ptr, ptr %21, align 8
  %166 = load i64, ptr %22, align 8
  br label %167

167:
  %168 = phi i64 [ 0, %164 ], [ %206, %205 ]
  %169 = mul i64 %168, %166
  %170 = getelementptr inbounds i8, ptr %165, i64 %169
  %171 = getelementptr inbounds i8, ptr %170, i64 4
  %172 = load i32, ptr %171, align 4
  %173 = icmp eq i32 %172, 1
  br i1 %173, label %174, label %205

174:
  %175 = getelementptr inbounds i8, ptr %170, i64 8
  %176 = load i32, ptr %175, align 8
  br label %177

177:
  %178 = phi i64 [ 0, %174 ], [ %193, %189 ]
  %179 = phi i64 [ 0, %174 ], [ %192, %189 ]
  %180 = mul i64 %178, %166
  %181 = getelementptr inbounds i8, ptr %165, i64 %180
  %182 = getelementptr inbounds i8, ptr %181, i64 4
  %183 = load i32, ptr %182, align 4
  %184 = icmp eq i32 %183, 1
  br i1 %184, label %185, label %189

185:
  %186 = getelementptr inbounds i8, ptr %181, i64 8
  %187 = load i32, ptr %186, align 8
  %188 = icmp eq i32 %187, %176
  br label %189

189:
  %190 = phi i1 [ false, %177 ], [ %188, %185 ]
  %191 = zext i1 %190 to i64
  %192 = add i64 %179, %191
  %193 = add nuw i64 %178, 1
  %194 = icmp eq i64 %193, %154
  br i1 %194, label %195, label %177

195:
  %196 = getelementptr inbounds i8, ptr %170, i64 12
  %197 = load i32, ptr %196, align 4
  %198 = icmp eq i32 %197, 0
  br i1 %198, label %203, label %199

199:
  %200 = shl i64 %192, 5
  %201 = zext i32 %197 to i64
  %202 = icmp eq i64 %200, %201
  br i1 %202, label %208, label %205

203:
  %204 = icmp eq i64 %192, %152
  br i1 %204, label %208, label %205

205:
  %206 = add nuw i64 %168, 1
  %207 = icmp eq i64 %206, %154
  br i1 %207, label %341, label %167

208:
  %209 = phi i64 [ %152, %203 ], [ %192, %199 ]
  %210 = shl i64 %154, 5
  %211 = load i64, ptr %24, align 8
  %212 = sub nsw i64 %211, %210
  store i64 %212, ptr %24, align 8
  %213 = icmp sgt i64 %212, -1
  br i1 %213, label %214, label %341

214:
  %215 = load i64, ptr %25, align 8
  %216 = add i64 %215, 1
  store i64 %216, ptr %25, align 8
  %217 = load i64, ptr %6, align 8
  %218 = icmp eq i64 %217, 0
  br i1 %218, label %289, label %229

219:
  %220 = icmp eq i64 %209, %152
  %221 = add i32 %256, 1
  %222 = insertelement <32 x i32> poison, i32 %221, i64 0
  %223 = shufflevector <32 x i32> %222, <32 x i32> poison, <32 x i32> zeroinitializer
  %224 = and <32 x i32> %223, %257
  %225 = xor <32 x i32> %257, <i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1>
  %226 = and <32 x i32> %258, %225
  %227 = or <32 x i32> %224, %226
  %228 = tail call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %227)
  br i1 %220, label %261, label %263

229:
  %230 = phi <32 x i32> [ %258, %255 ], [ zeroinitializer, %214 ]
  %231 = phi <32 x i32> [ %257, %255 ], [ zeroinitializer, %214 ]
  %232 = phi i32 [ %256, %255 ], [ 0, %214 ]
  %233 = phi i64 [ %259, %255 ], [ 0, %214 ]
  %234 = mul i64 %233, %166
  %235 = getelementptr inbounds i8, ptr %165, i64 %234
  %236 = getelementptr inbounds i8, ptr %235, i64 4
  %237 = load i32, ptr %236, align 4
  %238 = icmp eq i32 %237, 1
  br i1 %238, label %239, label %255

239:
  %240 = getelementptr inbounds i8, ptr %235, i64 8
  %241 = load i32, ptr %240, align 8
  %242 = icmp eq i32 %241, %176
  br i1 %242, label %243, label %255

243:
  %244 = getelementptr inbounds i8, ptr %235, i64 192
  %245 = load <32 x i32>, ptr %244, align 64
  %246 = tail call <32 x i32> @llvm.umax.v32i32(<32 x i32> %230, <32 x i32> %245)
  %247 = trunc i64 %233 to i32
  %248 = insertelement <32 x i32> poison, i32 %247, i64 0
  %249 = shufflevector <32 x i32> %248, <32 x i32> poison, <32 x i32> zeroinitializer
  %250 = icmp eq <32 x i32> %249, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %251 = select <32 x i1> %250, <32 x i32> <i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1, i32 -1>, <32 x i32> %231
  %252 = getelementptr inbounds i8, ptr %235, i64 20
  %253 = load i32, ptr %252, align 4
  %254 = tail call i32 @llvm.umax.i32(i32 %253, i32 %232)
  br label %255

255:
  %256 = phi i32 [ %254, %243 ], [ %232, %239 ], [ %232, %229 ]
  %257 = phi <32 x i32> [ %251, %243 ], [ %231, %239 ], [ %231, %229 ]
  %258 = phi <32 x i32> [ %246, %243 ], [ %230, %239 ], [ %230, %229 ]
  %259 = add nuw i64 %233, 1
  %260 = icmp eq i64 %259, %154
  br i1 %260, label %219, label %229

261:
  %262 = zext i32 %221 to i64
  store i64 %262, ptr %20, align 8
  br label %263

263:
  br label %264

264:
  %265 = phi i64 [ %284, %283 ], [ %154, %263 ]
  %266 = phi i64 [ %285, %283 ], [ 0, %263 ]
  %267 = load ptr, ptr %21, align 8
  %268 = load i64, ptr %22, align 8
  %269 = mul i64 %268, %266
  %270 = getelementptr inbounds i8, ptr %267, i64 %269
  %271 = getelementptr inbounds i8, ptr %270, i64 4
  %272 = load i32, ptr %271, align 4
  %273 = icmp eq i32 %272, 1
  br i1 %273, label %274, label %283

274:
  %275 = getelementptr inbounds i8, ptr %270, i64 8
  %276 = load i32, ptr %275, align 8
  %277 = icmp eq i32 %276, %176
  br i1 %277, label %278, label %283

278:
  %279 = getelementptr inbounds i8, ptr %270, i64 20
  store i32 %221, ptr %279, align 4
  %280 = getelementptr inbounds i8, ptr %270, i64 28
  store i32 %228, ptr %280, align 4
  %281 = getelementptr inbounds i8, ptr %270, i64 192
  store <32 x i32> %227, ptr %281, align 64
  %282 = load i64, ptr %18, align 8
  br label %283

283:
  %284 = phi i64 [ %265, %264 ], [ %265, %274 ], [ %282, %278 ]
  %285 = add nuw i64 %266, 1
  %286 = icmp ult i64 %285, %284
  br i1 %286, label %264, label %287

287:
  %288 = icmp eq i64 %284, 0
  br i1 %288, label %313, label %289

289:
  %290 = phi i64 [ %154, %214 ], [ %284, %287 ]
  br label %291

291:
  %292 = phi i64 [ %308, %307 ], [ %290, %289 ]
  %293 = phi i64 [ %309, %307 ], [ 0, %289 ]
  %294 = load ptr, ptr %21, align 8
  %295 = load i64, ptr %22, align 8
  %296 = mul i64 %295, %293
  %297 = getelementptr inbounds i8, ptr %294, i64 %296
  %298 = getelementptr inbounds i8, ptr %297, i64 4
  %299 = load i32, ptr %298, align 4
  %300 = icmp eq i32 %299, 1
  br i1 %300, label %301, label %307

301:
  %302 = getelementptr inbounds i8, ptr %297, i64 8
  %303 = load i32, ptr %302, align 8
  %304 = icmp eq i32 %303, %176
  br i1 %304, label %305, label %307

305:
  store i32 0, ptr %298, align 4
  %306 = load i64, ptr %18, align 8
  br label %307

307:
  %308 = phi i64 [ %292, %291 ], [ %292, %301 ], [ %306, %305 ]
  %309 = add nuw i64 %293, 1
  %310 = icmp ult i64 %309, %308
  br i1 %310, label %291, label %311

311:
  %312 = icmp eq i64 %308, 0
  br i1 %312, label %313, label %156

313:
  %314 = phi i64 [ 0, %66 ], [ 0, %99 ], [ 0, %287 ], [ %154, %160 ], [ 0, %311 ]
  %315 = load i64, ptr %6, align 8
  %316 = icmp eq i64 %315, 0
  br i1 %316, label %338, label %317

317:
  %318 = icmp eq i64 %314, 0
  br i1 %318, label %334, label %319

319:
  %320 = load ptr, ptr %21, align 8
  %321 = load i64, ptr %22, align 8
  %322 = getelementptr i8, ptr %320, i64 20
  br label %325

323:
  %324 = icmp ult i32 %331, 262144
  br i1 %324, label %334, label %341

325:
  %326 = phi i64 [ 0, %319 ], [ %332, %325 ]
  %327 = phi i32 [ 0, %319 ], [ %331, %325 ]
  %328 = mul i64 %326, %321
  %329 = getelementptr i8, ptr %322, i64 %328
  %330 = load i32, ptr %329, align 4
  %331 = tail call i32 @llvm.umax.i32(i32 %330, i32 %327)
  %332 = add nuw i64 %326, 1
  %333 = icmp eq i64 %332, %314
  br i1 %333, label %323, label %325

334:
  %335 = phi i32 [ %331, %323 ], [ 0, %317 ]
  %336 = add nuw nsw i32 %335, 1
  %337 = zext nneg i32 %336 to i64
  store i64 %337, ptr %7, align 8
  br label %338

338:
  %339 = add nuw i64 %29, 1
  %340 = icmp eq i64 %339, %2
  br i1 %340, label %341, label %27

341:
  %342 = phi i64 [ %29, %34 ], [ %1, %3 ], [ %29, %205 ], [ %29, %112 ], [ %29, %162 ], [ %29, %208 ], [ %2, %338 ], [ %29, %323 ]
  %343 = tail call i64 @llvm.umin.i64(i64 %342, i64 %2)
  ret i64 %343
}

declare <8 x i32> @llvm.umax.v8i32(<8 x i32>, <8 x i32>)

declare i32 @llvm.cttz.i32(i32, i1 immarg)

define internal fastcc i1 @resolve(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i32 %5, i64 %6, i1 %7, ptr %8) {
  %10 = and i64 %4, %2
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %12, label %135

12:
  switch i32 %5, label %78 [
    i32 3, label %13
    i32 1, label %17
    i32 2, label %37
    i32 4, label %62
  ]

13:
  %14 = and i64 %2, -4294967296
  %15 = icmp eq i64 %14, 140685948747776
  %16 = and i64 %2, 4294967295
  br i1 %15, label %37, label %78

17:
  %18 = getelementptr inbounds i8, ptr %0, i64 40
  %19 = load i64, ptr %18, align 8
  %20 = icmp ugt i64 %19, %2
  %21 = sub i64 %19, %2
  %22 = icmp uge i64 %21, %3
  %23 = and i1 %20, %22
  br i1 %23, label %24, label %135

24:
  %25 = getelementptr inbounds i8, ptr %0, i64 32
  %26 = load ptr, ptr %25, align 8
  %27 = getelementptr inbounds i8, ptr %26, i64 %2
  %28 = getelementptr inbounds i8, ptr %0, i64 48
  %29 = load ptr, ptr %28, align 8
  %30 = icmp eq ptr %29, null
  %31 = getelementptr inbounds i8, ptr %29, i64 %2
  %32 = select i1 %30, ptr null, ptr %31
  %33 = getelementptr inbounds i8, ptr %0, i64 296
  store ptr %27, ptr %8, align 8
  %34 = getelementptr inbounds i8, ptr %8, i64 8
  store ptr %32, ptr %34, align 8
  %35 = getelementptr inbounds i8, ptr %8, i64 16
  store ptr %33, ptr %35, align 8
  %36 = getelementptr inbounds i8, ptr %8, i64 24
  store i64 %2, ptr %36, align 8
  br label %135

37:
  %38 = phi i64 [ %16, %13 ], [ %2, %12 ]
  %39 = getelementptr inbounds i8, ptr %0, i64 264
  %40 = load i64, ptr %39, align 8
  %41 = icmp ugt i64 %40, %38
  %42 = sub i64 %40, %38
  %43 = icmp uge i64 %42, %3
  %44 = and i1 %41, %43
  br i1 %44, label %45, label %135

45:
  %46 = getelementptr inbounds i8, ptr %0, i64 72
  %47 = load i64, ptr %46, align 8
  %48 = mul i64 %47, %6
  %49 = add i64 %48, %38
  %50 = getelementptr inbounds i8, ptr %0, i64 56
  %51 = load ptr, ptr %50, align 8
  %52 = getelementptr inbounds i8, ptr %51, i64 %49
  %53 = getelementptr inbounds i8, ptr %0, i64 64
  %54 = load ptr, ptr %53, align 8
  %55 = icmp eq ptr %54, null
  %56 = getelementptr inbounds i8, ptr %54, i64 %49
  %57 = select i1 %55, ptr null, ptr %56
  %58 = getelementptr inbounds i8, ptr %0, i64 320
  store ptr %52, ptr %8, align 8
  %59 = getelementptr inbounds i8, ptr %8, i64 8
  store ptr %57, ptr %59, align 8
  %60 = getelementptr inbounds i8, ptr %8, i64 16
  store ptr %58, ptr %60, align 8
  %61 = getelementptr inbounds i8, ptr %8, i64 24
  store i64 0, ptr %61, align 8
  br label %135

62:
  br i1 %7, label %135, label %63

63:
  %64 = getelementptr inbounds i8, ptr %0, i64 24
  %65 = load i64, ptr %64, align 8
  %66 = icmp ugt i64 %65, %2
  %67 = sub i64 %65, %2
  %68 = icmp uge i64 %67, %3
  %69 = and i1 %66, %68
  br i1 %69, label %70, label %135

70:
  %71 = getelementptr inbounds i8, ptr %0, i64 16
  %72 = load ptr, ptr %71, align 8
  %73 = getelementptr inbounds i8, ptr %72, i64 %2
  %74 = getelementptr inbounds i8, ptr %0, i64 320
  store ptr %73, ptr %8, align 8
  %75 = getelementptr inbounds i8, ptr %8, i64 8
  store ptr null, ptr %75, align 8
  %76 = getelementptr inbounds i8, ptr %8, i64 16
  store ptr %74, ptr %76, align 8
  %77 = getelementptr inbounds i8, ptr %8, i64 24
  store i64 0, ptr %77, align 8
  br label %135

78:
  %79 = getelementptr inbounds i8, ptr %0, i64 8
  %80 = load i64, ptr %79, align 8
  %81 = icmp eq i64 %80, 0
  br i1 %81, label %131, label %82

82:
  %83 = load ptr, ptr %0, align 8
  %84 = load i64, ptr %83, align 8
  %85 = sub i64 %2, %84
  %86 = getelementptr inbounds i8, ptr %83, i64 8
  %87 = load i64, ptr %86, align 8
  %88 = icmp ult i64 %85, %87
  %89 = sub i64 %87, %85
  %90 = icmp uge i64 %89, %3
  %91 = and i1 %88, %90
  br i1 %91, label %108, label %92

92:
  %93 = phi i64 [ %94, %96 ], [ 0, %82 ]
  %94 = add nuw i64 %93, 1
  %95 = icmp eq i64 %94, %80
  br i1 %95, label %131, label %96

96:
  %97 = getelementptr inbounds %struct.Region, ptr %83, i64 %94
  %98 = load i64, ptr %97, align 8
  %99 = sub i64 %2, %98
  %100 = getelementptr inbounds i8, ptr %97, i64 8
  %101 = load i64, ptr %100, align 8
  %102 = icmp ult i64 %99, %101
  %103 = sub i64 %101, %99
  %104 = icmp uge i64 %103, %3
  %105 = and i1 %102, %104
  br i1 %105, label %106, label %92

106:
  %107 = icmp ult i64 %94, %80
  br label %108

108:
  %109 = phi i1 [ true, %82 ], [ %107, %106 ]
  %110 = phi ptr [ %83, %82 ], [ %97, %106 ]
  %111 = phi i64 [ %85, %82 ], [ %99, %106 ]
  br i1 %7, label %112, label %116

112:
  %113 = getelementptr inbounds i8, ptr %110, i64 32
  %114 = load i64, ptr %113, align 8
  %115 = icmp eq i64 %114, 0
  br i1 %115, label %131, label %116

116:
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1, ptr align 8 %110, i64 64, i1 false)
  %117 = getelementptr inbounds i8, ptr %110, i64 16
  %118 = load i64, ptr %117, align 8
  %119 = add i64 %118, %2
  %120 = inttoptr i64 %119 to ptr
  %121 = getelementptr inbounds i8, ptr %110, i64 24
  %122 = load i64, ptr %121, align 8
  %123 = icmp eq i64 %122, 0
  %124 = add i64 %122, %2
  %125 = inttoptr i64 %124 to ptr
  %126 = select i1 %123, ptr null, ptr %125
  %127 = getelementptr inbounds i8, ptr %1, i64 40
  store ptr %120, ptr %8, align 8
  %128 = getelementptr inbounds i8, ptr %8, i64 8
  store ptr %126, ptr %128, align 8
  %129 = getelementptr inbounds i8, ptr %8, i64 16
  store ptr %127, ptr %129, align 8
  %130 = getelementptr inbounds i8, ptr %8, i64 24
  store i64 %111, ptr %130, align 8
  br label %131

131:
  %132 = phi i1 [ %109, %112 ], [ %109, %116 ], [ false, %78 ], [ false, %92 ]
  %133 = phi i1 [ false, %112 ], [ true, %116 ], [ undef, %78 ], [ undef, %92 ]
  %134 = and i1 %132, %133
  br label %135

135:
  %136 = phi i1 [ %134, %131 ], [ true, %70 ], [ true, %24 ], [ false, %9 ], [ false, %17 ], [ false, %63 ], [ false, %62 ], [ false, %37 ], [ true, %45 ]
  ret i1 %136
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)

define internal fastcc i1 @lane_write(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, i32 %5, i1 %6) {
  %8 = load i64, ptr %2, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %190, label %10

10:
  %11 = getelementptr inbounds i8, ptr %2, i64 16
  %12 = load i64, ptr %11, align 8
  %13 = and i64 %12, 255
  %14 = lshr i64 %3, %13
  %15 = shl i64 %14, 2
  %16 = add i64 %15, %8
  %17 = getelementptr inbounds i8, ptr %1, i64 20
  %18 = load i32, ptr %17, align 4
  %19 = getelementptr inbounds i8, ptr %1, i64 24
  store i32 %18, ptr %19, align 8
  %20 = inttoptr i64 %16 to ptr
  %21 = getelementptr inbounds i8, ptr %2, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = add i64 %16, %22
  %24 = inttoptr i64 %23 to ptr
  %25 = shl i32 %18, 14
  %26 = load i64, ptr %11, align 8
  %27 = icmp ugt i64 %26, 255
  br i1 %27, label %33, label %28

28:
  %29 = getelementptr inbounds i8, ptr %0, i64 280
  %30 = load i64, ptr %29, align 8
  %31 = trunc i64 %30 to i32
  %32 = shl i32 %31, 14
  br label %33

33:
  %34 = phi i32 [ %32, %28 ], [ 0, %10 ]
  %35 = lshr i64 %4, %13
  %36 = or i32 %25, %5
  %37 = getelementptr inbounds i8, ptr %1, i64 28
  %38 = getelementptr inbounds i8, ptr %1, i64 192
  %39 = and i32 %5, 4096
  %40 = icmp eq i32 %39, 0
  %41 = getelementptr inbounds i8, ptr %0, i64 288
  %42 = or i32 %36, 8192
  %43 = and i32 %36, -12289
  %44 = tail call i64 @llvm.umax.i64(i64 %35, i64 1)
  br label %45

45:
  %46 = phi i64 [ 0, %33 ], [ %188, %187 ]
  %47 = getelementptr inbounds i32, ptr %20, i64 %46
  %48 = getelementptr inbounds i32, ptr %24, i64 %46
  %49 = load i32, ptr %48, align 4
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %90, label %51

51:
  %52 = icmp ult i32 %49, %34
  br i1 %52, label %80, label %53

53:
  %54 = and i32 %49, 2048
  %55 = icmp eq i32 %54, 0
  br i1 %55, label %60, label %56

56:
  %57 = lshr i32 %49, 14
  %58 = load i32, ptr %37, align 4
  %59 = icmp ult i32 %57, %58
  br i1 %59, label %90, label %80

60:
  %61 = xor i32 %49, %36
  %62 = and i32 %61, 992
  %63 = icmp eq i32 %62, 0
  br i1 %63, label %72, label %64

64:
  %65 = lshr i32 %49, 14
  %66 = lshr i32 %49, 5
  %67 = and i32 %66, 31
  %68 = zext nneg i32 %67 to i64
  %69 = getelementptr inbounds <32 x i32>, ptr %38, i64 0, i64 %68
  %70 = load i32, ptr %69, align 4
  %71 = icmp ult i32 %65, %70
  br i1 %71, label %90, label %80

72:
  %73 = icmp ult i32 %61, 16384
  br i1 %73, label %74, label %90

74:
  %75 = and i32 %61, 31
  %76 = or i32 %49, %5
  %77 = and i32 %76, 1024
  %78 = or disjoint i32 %75, %77
  %79 = icmp eq i32 %78, 0
  br i1 %79, label %90, label %80

80:
  %81 = and i32 %39, %49
  %82 = icmp eq i32 %81, 0
  br i1 %82, label %190, label %83

83:
  %84 = and i32 %49, 8192
  %85 = icmp eq i32 %84, 0
  br i1 %85, label %90, label %86

86:
  %87 = xor i32 %49, %5
  %88 = and i32 %87, 3040
  %89 = icmp eq i32 %88, 0
  br i1 %89, label %90, label %190

90:
  %91 = phi i1 [ false, %86 ], [ true, %74 ], [ true, %56 ], [ true, %64 ], [ true, %45 ], [ true, %72 ], [ false, %83 ]
  %92 = load i32, ptr %47, align 4
  %93 = icmp eq i32 %92, 0
  br i1 %93, label %172, label %94

94:
  %95 = icmp ult i32 %92, %34
  br i1 %95, label %137, label %96

96:
  %97 = and i32 %92, 2048
  %98 = icmp eq i32 %97, 0
  br i1 %98, label %103, label %99

99:
  %100 = lshr i32 %92, 14
  %101 = load i32, ptr %37, align 4
  %102 = icmp ult i32 %100, %101
  br i1 %102, label %123, label %137

103:
  %104 = xor i32 %92, %36
  %105 = and i32 %104, 992
  %106 = icmp eq i32 %105, 0
  br i1 %106, label %115, label %107

107:
  %108 = lshr i32 %92, 14
  %109 = lshr i32 %92, 5
  %110 = and i32 %109, 31
  %111 = zext nneg i32 %110 to i64
  %112 = getelementptr inbounds <32 x i32>, ptr %38, i64 0, i64 %111
  %113 = load i32, ptr %112, align 4
  %114 = icmp ult i32 %108, %113
  br i1 %114, label %123, label %137

115:
  %116 = icmp ult i32 %104, 16384
  br i1 %116, label %117, label %123

117:
  %118 = and i32 %104, 31
  %119 = or i32 %92, %5
  %120 = and i32 %119, 1024
  %121 = or disjoint i32 %118, %120
  %122 = icmp eq i32 %121, 0
  br i1 %122, label %123, label %137

123:
  %124 = and i32 %92, 12288
  %125 = icmp eq i32 %124, 4096
  %126 = or i1 %40, %125
  br i1 %126, label %172, label %127

127:
  %128 = lshr i32 %92, 14
  %129 = load i64, ptr %41, align 8
  %130 = trunc i64 %129 to i32
  %131 = icmp ult i32 %128, %130
  br i1 %131, label %172, label %132

132:
  %133 = xor i32 %92, %5
  %134 = and i32 %133, 3040
  %135 = icmp eq i32 %134, 0
  %136 = select i1 %135, i32 %42, i32 %43
  br label %172

137:
  %138 = and i32 %92, 4096
  %139 = and i32 %138, %36
  %140 = icmp eq i32 %139, 0
  br i1 %140, label %148, label %141

141:
  %142 = and i32 %92, 8192
  %143 = icmp eq i32 %142, 0
  br i1 %143, label %151, label %144

144:
  %145 = xor i32 %92, %5
  %146 = and i32 %145, 3040
  %147 = icmp eq i32 %146, 0
  br label %148

148:
  %149 = phi i1 [ false, %137 ], [ %147, %144 ]
  %150 = or i1 %149, %6
  br i1 %150, label %151, label %190

151:
  %152 = or i32 %92, %5
  %153 = and i32 %152, 8192
  %154 = icmp eq i32 %153, 0
  %155 = select i1 %154, i32 %139, i32 0
  br i1 %95, label %156, label %158

156:
  %157 = or disjoint i32 %155, 18432
  br label %172

158:
  %159 = xor i32 %92, %5
  %160 = and i32 %159, 3040
  %161 = icmp eq i32 %160, 0
  br i1 %161, label %162, label %167

162:
  %163 = or disjoint i32 %138, -13313
  %164 = and i32 %163, %36
  %165 = or disjoint i32 %153, %164
  %166 = or disjoint i32 %165, 1024
  br label %172

167:
  %168 = tail call i32 @llvm.umax.i32(i32 %92, i32 %36)
  %169 = and i32 %168, -16384
  %170 = or disjoint i32 %169, %155
  %171 = or disjoint i32 %170, 2048
  br label %172

172:
  %173 = phi i32 [ %136, %132 ], [ %36, %127 ], [ %36, %123 ], [ %157, %156 ], [ %166, %162 ], [ %171, %167 ], [ %36, %90 ]
  store i32 %173, ptr %47, align 4
  br i1 %91, label %174, label %187

174:
  %175 = load i32, ptr %48, align 4
  %176 = icmp eq i32 %175, 0
  %177 = and i32 %175, 12288
  %178 = icmp eq i32 %177, 4096
  %179 = or i1 %176, %178
  %180 = or i1 %179, %40
  br i1 %180, label %186, label %181

181:
  %182 = lshr i32 %175, 14
  %183 = load i64, ptr %41, align 8
  %184 = trunc i64 %183 to i32
  %185 = icmp ult i32 %182, %184
  br i1 %185, label %186, label %187

186:
  store i32 0, ptr %48, align 4
  br label %187

187:
  %188 = add nuw i64 %46, 1
  %189 = icmp eq i64 %188, %44
  br i1 %189, label %190, label %45

190:
  %191 = phi i1 [ true, %7 ], [ true, %187 ], [ false, %80 ], [ false, %86 ], [ false, %148 ]
  ret i1 %191
}

declare i32 @warp(ptr, ptr, i32)

declare <32 x i32> @llvm.umax.v32i32(<32 x i32>, <32 x i32>)

declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)

declare i64 @llvm.umax.i64(i64, i64)

declare i32 @llvm.umax.i32(i32, i32)

declare i64 @llvm.umin.i64(i64, i64)

declare i32 @llvm.smax.i32(i32, i32)

declare i32 @llvm.smin.i32(i32, i32)

declare i64 @llvm.smax.i64(i64, i64)

declare i64 @llvm.smin.i64(i64, i64)
