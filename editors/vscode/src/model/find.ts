// Where the program `agents` is. Pure: the caller says what exists.

export interface Surroundings {
  /** The setting; empty where there is none. */
  readonly configured: string;
  readonly path: string;
  readonly home: string;
  readonly windows: boolean;
  readonly isProgram: (file: string) => boolean;
}

export type Found =
  | { readonly program: string }
  /** What a person reads, and whether a setting is to blame. */
  | { readonly problem: string; readonly configured: boolean };

/** The program to start, or why there is none. */
export function findProgram(of: Surroundings): Found {
  const names = of.windows ? ['agents.exe'] : ['agents'];
  const slash = of.windows ? '\\' : '/';
  if (of.configured) {
    const program = of.configured.replace(/^~(?=[/\\])/, of.home);
    if (of.isProgram(program)) return { program };
    return {
      configured: true,
      problem: `The setting cleveragents.server.path names ${of.configured}, which is no program that can be run.`,
    };
  }
  const folders = of.path.split(of.windows ? ';' : ':').filter(Boolean);
  const usual = [`${of.home}${slash}.cargo${slash}bin`, `${of.home}${slash}.local${slash}bin`];
  for (const folder of [...folders, ...usual]) {
    for (const name of names) {
      const program = `${folder.replace(/[/\\]$/, '')}${slash}${name}`;
      if (of.isProgram(program)) return { program };
    }
  }
  return {
    configured: false,
    problem: 'The program agents is not on the PATH that the editor was started with, nor in ~/.cargo/bin or ~/.local/bin.',
  };
}
