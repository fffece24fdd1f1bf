"""An LMDB database of 149 short pairs and a large one, as LMDB's own library (0.9.31) wrote it."""

import base64
import zlib

SHORT = {b"key%03d" % i: b"value " * 5 for i in range(150) if i != 7}
PAIRS = {**SHORT, b"large": b"0123456789" * 900}

DATABASE = zlib.decompress(
    base64.b85decode(
        "c-"
        "rlqEsPX*7>DO`cXoGnhmZ?FkcI>VqGI0p+({58Di8=n1)`#taDk*J8Ujt5ASx;<DozkUAP@)y0)eQw5Cj5&K"
        "p;+#27w?K5)c(9nv`%Xd$TRg-V;dZU4D<)d3W!<uRLa-y}kS$=RMKZ?H~7F-"
        "E*Bb`=*y@ar+~)JKOjBGmm=H$GyqbpIooZeAn&I^Bf_B5JCtcgb+e}YFyO+^S|ET6Xx~*)yXxOT)Y4Jd4v!`"
        "2qA<JLJ0Ax@LJP7Cw8ACw~|ZAspM#~IeIj@F}g51F*-"
        "DQJ$x{{He4Al4i|<m;<b1+J`<1QIDR&`JNR|*%^)2FgZ2LH{?Gld`^Wl!^&a<b_I~W0>>cj?89j`yN8d+ZMF"
        "*po-TU3k-E-aJ-F@BXo!>jZb-wKsov8CPyc7Nso({hZo$yI;E4UP#3XTSw{v-"
        "c}f5AWDAM#&&54>yMinr)3crV;Fchx=Pj@{UOHuv}YV(Yf!e7F2lI<9|MTDiD<_`hyvb}O)3g53h_=3qAiy9"
        "RdCo$uBS*d2pi;H?JUYT&H~-fG~j2HtAmtp?sI;H?7QD&VaG-YVd&0^Ta%tpeUE;H?7QO5m*o-"
        "b&!D1l~&Etpwgm;H?DSO5m*o-U{HY0Nx7VtpMH%;H?1O3gE2(-U{HY0N!%oEeGCm;4KH<a^Nio-"
        "g4kA2i|hvEeGB*;4K5*GT<!(-ZJ1V1Ku*=Ed$;%;4K5*40to(&44!p-VAs%;LU(H1KtdHGvF-+-"
        "csN#1>RENEd}0E;4KB-Qs6BG-qJbV{8s<3ItRkf+y4hby&@xo_`DoD^7frbp|i4d{_Jx2f!7iZG@OBkGth7b"
        "8qPq&8E7~I4QHU?3^bg9hBMG`1{%&l!x?Be0}W@O;S4mKfrc~Ca0VLAK*JemI0Fr5py3QOoPmZj&~OGC&OpN"
        "%XgC86XQ1H>G@OBkGth7b8qPq&8E7~I4QHU?3^bg9hBMG`1{%&l!x?Be0}W@O;S4mKrJ%hV(B2Jb?*_DY1KP"
        "U*?cIR(Za{lCpuHQ=-VN|J2HwWN+q}Pd2h-=guCw55B%8@bqUZlY2qA<JLI@$mZpEK@Rp9;m{<r_&9&Bx-mg"
        "PlR)#FB!CQX_&Y0{)glO|1?G-"
        "=YLNs}f`nlx$Bq)C$|O`0@m(xgd~roB7q{X{|tA%qY@h}}jso%H|zLI@#*5JCtc#O`PI|NncFM|;zcd(N6O-"
        "gD>w?Uau?|4(NH>a4)_uFeY7S%K|cofW9F0^7SfD^O<zws&<_pw0?x@9L~TofX*L)mef3tU#Urx1;m_`mO%o"
        "@2n^5d#wM-SqN%+HNBc%O|Pa`)2r##^lExFy_#N4ucrT>G<~i9-)a9J+}e*EZ(8^72>x;Z4U$~V$^"
    )
)
