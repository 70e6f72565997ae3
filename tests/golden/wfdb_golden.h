/* Made by make_wfdb.py with wfdb 4.3.1: record, SHA-256 over its stored integers. */
static const struct {
  const char *record, *sha256;
} WFDB_GOLDEN[] = {
    {"cinc2017_af/A00001", "a264ee4b49c004375a66869209caa288d36ab76cc72f185363d45d43baa4118f"},
    {"cinc2017_af/A00013", "76e039bcac06fa9250054786345a3dd62e71502f340b566273a8d4d43467bca7"},
    {"cinc2017_af/A00044", "36dfc8250dafa6cf28be738f29846a1a7d844dd6c75e5b77e0e9e85fbc117fcf"},
    {"cinc2021_12lead/A0689", "7d0e399850727ce4badda08409d6b633a78733e5849ae5eb11bf87caaece688d"},
    {"cinc2021_12lead/E00009", "78cad0f3fa6e566155c3c034c5b0f10ef72651449cdb9e147545d6c02ca1a13f"},
    {"cinc2021_12lead/JS20005", "1734ed84a1dcb67e2465771afc32e2f6a9b3840f83c7e8c744e0a6f6bd78d899"},
    {"mitbih_arrhythmia_5min/100", "f23ddbe1ada54e5b5b68c5b04678ced2d4003ac61e71f710125562e20daef7fa"},
    {"mitbih_arrhythmia_5min/114", "3f8d072195990e049e003d243a3d047eba61f51aaabc18e98ab83ba134f2c22a"},
    {"mitbih_arrhythmia_5min/201", "9e95df326884f90c1fdcba244dd8d04ecb11d0681cf4e4870f690b3e36740a67"},
    {"mitbih_arrhythmia_5min/232", "eefdd9e3a0a81b805b737f38f79379c844e320fa980a5f5b17deb2f69d7465d0"},
    {"wfdb_formats/s0010_re", "dc02b1ab1c42080c289ad8daea486a8b36ade4c8e5d720ea8a50f992f9f41f65"},
    {"wfdb_formats/v102s", "99ff4a96556781ac9836da713b14d0bd3d7a5e46248d3358b191dff8673103cd"},
    {"wfdb_formats/a103l", "073823aff40803c10a1eedfffb5ba00465b5e5a8e28961839551f138a61e5717"},
    {"wfdb_formats/100_3chan", "218f809fd4b96f6d6fdd2d3b408a325aa7b6283ac712ec46cd5b83787cf3257b"},
    {"wfdb_formats/test01_00s_frame", "21785fe3882c0f1899505df22666ff3ddf1ad7e1cf64b1f92504558c3197f7f3"},
    {"wfdb_formats/3000003_0003", "bc801a3745093a161c355b2e3dbab06e65e1e044e7ae435d12bf7f33ce51dd1f"},
    {"wfdb_formats/310derive", "22606c61c4c5c057c9f5a9dfd08de7fde214e51cecb48ab2a487d975b2934cdc"},
    {"wfdb_formats/311derive_2", "79b64fdda189e2ea25c8efe7ff523597fd6630d0268af455a1a7729d4160bb66"},
    {"wfdb_formats/flacformats", "6b35cf7c68b30c7289969e71cd60a2ae11ad8bb7bbd236a07ac8953b60d4e194"},
};
