//! What is typed, and what is answered.

/// A command of the shell, its exit code, and what it prints: to standard output if it succeeds,
/// and to standard error if it does not. Each runs in the folder that the earlier ones left.
pub(super) const COMMANDS: &[(&str, i32, &str)] = &[
    ("tapeloop", 2, "Usage: tapeloop [OPTIONS] [FILE]..."),
    ("tapeloop --help", 0, "tapeloop run structures/ -o out"),
    (
        "tapeloop help run",
        0,
        "3 finished with more rejected inputs than --max-rejects",
    ),
    (
        "tapeloop run --help | grep -A 1 max-rejects",
        0,
        "End with exit code 0 although up to N inputs were",
    ),
    ("tapeloop bench --help", 0, "compute, features, files"),
    ("tapeloop --version", 0, "tapeloop "),
    // A file alone.
    (
        "tapeloop 1ubi.pdb",
        0,
        "1ubi: 76 residues in 1 chain, 602 atoms",
    ),
    ("tapeloop 1ubi.pdb --features torsions", 0, "phi"),
    (
        "tapeloop 1ubi.pdb --format csv | head -n 1",
        0,
        "source,structure,model,res_index",
    ),
    (
        "tapeloop 1ubi.pdb --format json | tail -n 1",
        0,
        "\"auth_seq_id\":76",
    ),
    (
        "tapeloop 1ubi.pdb --format parquet > 1ubi.parquet; head -c 4 1ubi.parquet",
        0,
        "PAR1",
    ),
    ("tapeloop 1ubi", 1, "1ubi: .. did you mean `1ubi.pdb`?"),
    (
        "tapeloop 4hhb",
        1,
        "curl -O https://files.rcsb.org/download/4hhb.cif.gz",
    ),
    (
        "tapeloop 1ubo.pdb",
        1,
        "1ubo.pdb: .. did you mean `1ubi.pdb`?",
    ),
    ("tapeloop version", 2, "(type --version)"),
    ("tapeloop 1ubi.pdb --json", 2, "--format json"),
    ("tapeloop P12345", 1, "alphafold.ebi.ac.uk/entry/P12345"),
    (
        "tapeloop AF-P12345-F1",
        1,
        "alphafold.ebi.ac.uk/entry/P12345",
    ),
    ("tapeloop help rnu", 2, "did you mean `run`?"),
    ("tapeloop sasa 1ubi.pdb", 2, "--features sasa"),
    ("tapeloop --features sasa run 1ubi.pdb", 2, "tapeloop run"),
    (
        "tapeloop 1ubi.pdb --threads -2",
        2,
        "`threads` .. 0 to 4096",
    ),
    ("tapeloop 1ubi.pdb --threads two", 2, "no whole number"),
    (
        "tapeloop 1ubi.pdb --format CSV | head -n 1",
        0,
        "source,structure,model,res_index",
    ),
    ("tapeloop rum 1ubi.pdb", 2, "`rum` .. did you mean `run`?"),
    // Inputs.
    ("tapeloop run 1ubi.pdb", 0, ""),
    ("tapeloop run 1ubi.pdb && ls tapeloop-out", 0, "residues"),
    (
        "tapeloop run structures/",
        2,
        "results of another run .. fix: .. output",
    ),
    ("tapeloop run structures/ -o out", 0, ""),
    ("cat 1ubi.pdb | tapeloop run - -o twice", 0, ""),
    (
        "cat 1ubi.pdb | tapeloop run - -o twice",
        2,
        "results of another run",
    ),
    ("cd structures && tapeloop run . -o ../here", 0, ""),
    ("tapeloop run . -o here", 2, "results of another run"),
    (
        "tapeloop run structures/ -o out -v 2>&1",
        0,
        ": 1 (structures/notes.txt)",
    ),
    ("tapeloop run *.pdb -o all", 3, "junk.pdb: "),
    ("tapeloop run *.pdb -o all --max-rejects 1", 0, ""),
    (
        "tapeloop run -i 1ubi.pdb structures/1yjp.cif -o two --json",
        0,
        "\"structures\": 2",
    ),
    (
        "cat 1ubi.pdb | tapeloop run - -o piped && ls piped",
        0,
        "run.json",
    ),
    (
        "tapeloop - --features rg,sasa < 1ubi.pdb",
        0,
        "stdin: 76 residues",
    ),
    (
        "ls structures/*.cif | tapeloop run @- -o - | tail -n 1",
        0,
        "1yjp",
    ),
    ("tapeloop run job.toml && ls from-job", 0, "run.json"),
    ("tapeloop job.toml", 0, ""),
    ("tapeloop run configs/quickstart.toml", 0, ""),
    (
        "tapeloop run configs/quickstart.toml -v 2>&1",
        0,
        "PDB files without END .. : 1",
    ),
    ("tapeloop run samples -o out-samples", 0, ""),
    ("tapeloop run no.toml", 2, "no.toml: "),
    (
        "tapeloop run job.toml other.toml",
        2,
        "job.toml .. other.toml .. config",
    ),
    (
        "tapeloop run",
        2,
        "input .. fix: .. tapeloop run structures/",
    ),
    (
        "tapeloop run nowhere/ -o new",
        1,
        "nowhere: .. no such file",
    ),
    (
        "tapeloop run empty/ -o new",
        1,
        "empty: .. no structure file",
    ),
    (
        "tapeloop run 'sets/*.cif' -o new",
        1,
        "sets: .. no such file",
    ),
    (
        "tapeloop run @list.txt -o new",
        1,
        "list.txt: .. no such file",
    ),
    (
        "tapeloop run 1ubo.pdb -o new --dry-run",
        1,
        "1ubo.pdb: .. no such file",
    ),
    ("ls new", 2, "new"),
    ("tapeloop run 1ubi.mmtf -o binary", 1, "MMTF .. fix: "),
    ("tapeloop run set.tar.gz -o archive -q", 1, "cut short"),
    (
        "tapeloop run https://files.rcsb.org/download/4hhb.cif.gz",
        1,
        "fix: .. curl -O https://files.rcsb.org/download/4hhb.cif.gz",
    ),
    (
        "tapeloop run 1ubi.pdb -o 1ubi.pdb",
        2,
        "1ubi.pdb: .. file .. folder",
    ),
    // Options.
    (
        "tapeloop run 1ubi.pdb -o x --gpu",
        2,
        "tip: type --backend cuda",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --backend gpu",
        2,
        "did you mean `cuda`?",
    ),
    ("tapeloop run 1ubi.pdb -o by-column --features phi", 0, ""),
    (
        "tapeloop run 1ubi.pdb -o x --format excel",
        2,
        "possible values: parquet, arrow, csv, json",
    ),
    (
        "tapeloop run 1ubi.pdb -o x.csv",
        2,
        "-o - --format csv > x.csv",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --dry-run",
        0,
        "compute .. features (",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --dry-run",
        0,
        "residues, chains and structures .. parquet .. to x",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --device cpu",
        2,
        "\"cpu\" .. backend = \"cpu\"",
    ),
    // The tables of contacts and ligands, and what is no feature.
    (
        "tapeloop run 1ubi.pdb -o x --features contacts",
        2,
        "set contacts.atom = \"ca\" or \"cb\"",
    ),
    ("tapeloop run 1ubi.pdb -o by-name --features ligands", 0, ""),
    (
        "tapeloop run 1ubi.pdb -o x --features ligands --set ligands=drop",
        2,
        "set ligands = \"keep\"",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --features coordinates",
        2,
        "`coordinates` .. coordinates = [\"ca\"]",
    ),
    (
        "tapeloop run 1ubi.pdb -o by-switched-column --features ligand_dmin",
        0,
        "",
    ),
    (
        "tapeloop run 1ubi.pdb -o after-a-space --features phi, sasa",
        0,
        "",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set contacts=ca",
        2,
        "`contacts` .. table .. contacts.atom, contacts.cutoff",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set ligand=keep",
        2,
        "did you mean `ligands`?",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set contacts.radius=8",
        2,
        "contacts.radius .. contacts.atom, contacts.cutoff",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set contacts.atoms=ca",
        2,
        "did you mean `contacts.atom`?",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set ligands=true",
        2,
        "must be one of \"drop\", \"keep\", not a boolean",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set coordinates=calpha",
        2,
        "\"ca\", \"cb\", \"backbone\"",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set tables.written=contact",
        2,
        "\"contact\" .. did you mean `contacts`?",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --set 'tables.written=[\"residues\", \"contacts\"]'",
        2,
        "contacts .. contacts.atom",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --where 'ligand_dmin < 4'",
        2,
        "set ligands = \"keep\" .. `ligands`",
    ),
    (
        "tapeloop run 1ubi.pdb -o x --features rg --where 'sasa < 4'",
        2,
        "`features` .. `sasa`",
    ),
    (
        "tapeloop run 1ubi.pdb -o - --set contacts.atom=ca --set tables.written=contacts | head -n 1",
        0,
        "res_index_i,res_index_j,distance",
    ),
    (
        "tapeloop run 1ubi.pdb -o - --set 'tables.written=[\"chains\", \"structures\"]'",
        2,
        "one table .. `tables.written` .. chains and structures",
    ),
    (
        "tapeloop 1ubi.pdb --where 'sasa > 0' --features sasa | head -n 1",
        0,
        "1ubi: ",
    ),
    (
        "tapeloop run 1ubi.pdb -o both --set contacts.atom=cb --set ligands=keep && ls both",
        0,
        "contacts",
    ),
    (
        "tapeloop run 1ubi.pdb -o both --set contacts.atom=cb --set ligands=keep -v 2>&1",
        0,
        "of parquet: residues, chains, structures, contacts and ligands)",
    ),
    // Other commands.
    ("tapeloop features", 0, "contact_number"),
    ("tapeloop features --json", 0, "\"name\": \"torsions\""),
    (
        "tapeloop features contacts",
        0,
        "settings  contacts.atom = \"none\"",
    ),
    (
        "tapeloop features contact",
        2,
        "`contact` .. did you mean `contacts`?",
    ),
    ("tapeloop graph 1ubi.pdb", 2, "1ubi.pdb: .. config file"),
    ("tapeloop graph -o graph.svg", 2, "tip: .. > FILE"),
    (
        "tapeloop bench nowhere/ -o bench-out",
        1,
        "nowhere: .. no such file",
    ),
    ("ls bench-out", 2, "bench-out"),
    (
        "tapeloop bench --dry-run --workloads features",
        2,
        "features .. files .. structures",
    ),
    (
        "tapeloop bench structures --dry-run --workloads features",
        0,
        "features ring graph",
    ),
    (
        "tapeloop features --slots 4",
        2,
        "unexpected argument '--slots'",
    ),
    // Names, options and files that people try.
    (
        "tapeloop 1ubi.pdb --where \"resname == 'ALA'\"",
        2,
        "did you mean `comp_id`?",
    ),
    (
        "tapeloop 1ubi.pdb --set sasa.points 100",
        2,
        "write --set sasa.points=VALUE",
    ),
    (
        "tapeloop 1ubi.pdb --features 'sasa;dssp'",
        2,
        "commas separate names",
    ),
    (
        "tapeloop run 1ubi.pdb -f sasa",
        2,
        "tip: type --features NAMES",
    ),
    (
        "tapeloop run 1ubi.pdb --chain A",
        2,
        "tip: type --where \"chain == 'A'\"",
    ),
    (
        "tapeloop paint 1ubi.pdb bfactor -o b.pdb",
        2,
        "did you mean `b_ca`?",
    ),
    (
        "tapeloop paint 1ubi.pdb -o b.pdb sasa rsa",
        2,
        "tip: type one column",
    ),
    (
        "tapeloop inspect 1ubi.pdb",
        1,
        "structure file .. `tapeloop pack`",
    ),
    (
        "tapeloop bench --compare one.jsonl two.jsonl",
        1,
        "one.jsonl .. bench.jsonl",
    ),
    (
        "echo 'features: [sasa]' > job.yaml; tapeloop run job.yaml -o yaml; rm -r job.yaml yaml; exit 1",
        1,
        "write it as TOML",
    ),
    ("tapeloop methods 1ubi.pdb", 1, "`tapeloop run` wrote"),
    ("tapeloop features iface", 0, "interface_residues"),
    ("tapeloop features interface", 2, "interface_residues"),
    ("tapeloop doctor", 0, "Ready: "),
    ("tapeloop doctor --json", 0, "\"label\": \"backend\""),
    ("tapeloop devices --json", 0, "\"devices\""),
    ("tapeloop completions bash", 0, "complete -F _tapeloop"),
    (
        "mkdir man && tapeloop man man && ls man",
        0,
        "tapeloop-run.1",
    ),
    (
        "tapeloop paint 1ubi.pdb sasa -o painted.pdb && head -n 1 painted.pdb",
        0,
        "HEADER",
    ),
    ("tapeloop paint 1ubi.pdb sasa -o painted.pdb", 2, "exists"),
    (
        "tapeloop paint 1ubi.pdb sasa other.pdb",
        2,
        "tip: type -o other.pdb",
    ),
    ("tapeloop paint 1ubi.pdb sasa -o - | head -n 1", 0, "HEADER"),
    ("tapeloop paint structures sasa -o -", 2, "one file"),
    (
        "tapeloop paint 1ubi.pdb ligand_dmin -o ligand.pdb && head -n 1 ligand.pdb",
        0,
        "HEADER",
    ),
    (
        "tapeloop paint 1ubi.pdb ligand_dmin -o none.pdb --set ligands=drop",
        2,
        "set ligands = \"keep\"",
    ),
    (
        "tapeloop paint 1ubi.pdb wcn -o wcn.pdb --verbose 2>&1",
        0,
        "1ubi.pdb -> wcn.pdb: wcn at ",
    ),
    (
        "head -c 32470 1ubi.pdb > cut.pdb; tapeloop cut.pdb --features rg 2>&1 | grep warning",
        0,
        "cut short",
    ),
    // Windows programs write CRLF, and some a byte order mark; inputs and lists may have both.
    (
        r"sed 's/$/\r/' 1ubi.pdb > crlf.pdb; tapeloop crlf.pdb --features rg",
        0,
        "crlf: 76 residues in 1 chain, 602 atoms",
    ),
    (
        r"printf '\357\273\2771ubi.pdb\r\n' > list.txt; tapeloop @list.txt --features rg",
        0,
        "1ubi: 76 residues",
    ),
    (
        r"(printf '\357\273\277'; sed 's/$/\r/' job.toml) > crlf.toml; tapeloop crlf.toml",
        0,
        "",
    ),
    (
        "tapeloop paint 1ubi.pdb torsions -o y.pdb",
        2,
        "phi, psi, omega",
    ),
];
