/** All commands by task: name, one sentence, and the file that has the rest and is loaded when it is called. */
import type { AddCommand } from '../command.ts'
import { keysHelp, parkedHelp, projectionHelp, subjectsHelp } from './families.ts'

export type Listed = {
  readonly name: string
  readonly summary: string
  /** Undefined: the command only has commands of its own. */
  readonly load?: () => Promise<{ readonly default: AddCommand }>
  readonly help?: string
  readonly commands?: readonly Listed[]
}

const parked: Listed = {
  name: 'parked',
  summary: 'Shows parked records. Publishes them again after the records that they refer to exist.',
  help: parkedHelp,
  commands: [
    { name: 'list', summary: 'lists parked records', load: () => import('./parked/list.ts') },
    { name: 'count', summary: 'counts them by code', load: () => import('./parked/count.ts') },
    {
      name: 'show',
      summary: 'shows one record: why it was parked, its key, headers and value',
      load: () => import('./parked/show.ts'),
    },
    {
      name: 'publish-again',
      summary: 'publishes records again unchanged, oldest first: same key, headers and bytes, to the same topic',
      load: () => import('./parked/publish-again.ts'),
    },
  ],
}

const keys: Listed = {
  name: 'keys',
  summary: 'Makes, lists, rotates and revokes the API keys of an organization.',
  help: keysHelp,
  commands: [
    {
      name: 'create',
      summary: 'makes a key and shows its text, which is never shown again',
      load: () => import('./keys/create.ts'),
    },
    {
      name: 'list',
      summary: 'lists all keys by id, revoked and expired ones too',
      load: () => import('./keys/list.ts'),
    },
    {
      name: 'rotate',
      summary:
        'makes the next key, with the name and the permissions of this one, which stays valid until you revoke it',
      load: () => import('./keys/rotate.ts'),
    },
    {
      name: 'revoke',
      summary: 'revokes a key for ever: within 5 s every API refuses it',
      load: () => import('./keys/revoke.ts'),
    },
  ],
}

const subjects: Listed = {
  name: 'subjects',
  summary: 'Lists people, reports where the data of one is, and erases it by destroying its key.',
  help: subjectsHelp,
  commands: [
    {
      name: 'list',
      summary: 'lists the reps of an organization in the live generation, and the keys that seal their texts',
      load: () => import('./subjects/list.ts'),
    },
    {
      name: 'report',
      summary: 'shows each record with a text of the person, in every generation and sandbox, parked ones too',
      load: () => import('./subjects/report.ts'),
    },
    {
      name: 'erase',
      summary: 'shows what would be lost; with --confirm destroys the keys of the person, for ever',
      load: () => import('./subjects/erase.ts'),
    },
  ],
}

const projection: Listed = {
  name: 'projection',
  summary: 'Rebuilds the projection beside the live one, verifies it, swaps them; replays, compares, explains.',
  help: projectionHelp,
  commands: [
    { name: 'list', summary: 'lists the generations', load: () => import('./generations/list.ts') },
    {
      name: 'status',
      summary: 'shows the position of a generation in each partition, and its parked records',
      load: () => import('./generations/status.ts'),
    },
    {
      name: 'rebuild',
      summary: 'makes a generation from the first record on beside the live one, or continues one that was begun',
      load: () => import('./generations/rebuild.ts'),
    },
    {
      name: 'verify',
      summary: 'compares every document of two generations, as of positions that both have reached',
      load: () => import('./generations/verify.ts'),
    },
    {
      name: 'swap',
      summary: 'makes a generation live once it has reached the live one, which is kept up for a rollback',
      load: () => import('./generations/swap.ts'),
    },
    {
      name: 'rollback',
      summary: 'makes the previous generation live again',
      load: () => import('./generations/rollback.ts'),
    },
    {
      name: 'adopt',
      summary:
        'takes over indices that were restored from a snapshot: all records are read again before the API serves them',
      load: () => import('./generations/adopt.ts'),
    },
    {
      name: 'rewind',
      summary: 'like adopt, but reads the events again only from positions that are older than the snapshot',
      load: () => import('./generations/rewind.ts'),
    },
    {
      name: 'drop',
      summary: 'deletes a generation that is not live, or a sandbox',
      load: () => import('./generations/drop.ts'),
    },
    parked,
    {
      name: 'replay',
      summary: 'projects the log from its first record up to a given point into a sandbox, beside the live projection',
      load: () => import('./analysis/replay.ts'),
    },
    {
      name: 'diff',
      summary: 'compares two generations or sandboxes: money, lines, records',
      load: () => import('./analysis/diff.ts'),
    },
    {
      name: 'explain',
      summary: 'shows the history of a payout: its chain and what was paid; or of a deal, the payouts with its lines',
      load: () => import('./analysis/explain.ts'),
    },
    {
      name: 'export',
      summary: 'writes an organization as of one moment to files: a line of JSON for each record',
      load: () => import('./analysis/export.ts'),
    },
    {
      name: 'totals',
      summary: 'shows what is owed and paid by period and currency, at one moment',
      load: () => import('./analysis/totals.ts'),
    },
    {
      name: 'rules',
      summary: 'tries rules modules',
      commands: [
        {
          name: 'check',
          summary:
            'runs a rules module over records: whether it loads, is deterministic and keeps the sums, and its effect',
          load: () => import('./analysis/rules-check.ts'),
        },
      ],
    },
    {
      name: 'upgrade-keys',
      summary:
        'raises the version of the rules for API keys, with all projectors stopped: keys get permissions and expiry',
      load: () => import('./generations/upgrade-keys.ts'),
    },
  ],
}

export const catalogue: readonly (readonly [task: string, commands: readonly Listed[]])[] = [
  [
    'Start and check an installation:',
    [
      {
        name: 'topics',
        summary: 'Creates missing topics, configured to keep every record.',
        load: () => import('./installation/topics.ts'),
      },
      {
        name: 'doctor',
        summary:
          'Checks with the settings in force whether a process can do its work, and says how to mend what is wrong.',
        load: () => import('./installation/doctor.ts'),
      },
      keys,
      {
        name: 'reference',
        summary: 'Writes the reference of the API as files that a browser opens without a server.',
        load: () => import('./installation/reference.ts'),
      },
    ],
  ],
  [
    'Publish:',
    [
      {
        name: 'validate',
        summary:
          'Predicts the outcome of records before they are published: applied, duplicate, or parked with its code.',
        load: () => import('./log/validate.ts'),
      },
      parked,
    ],
  ],
  [
    'Rebuild and analyse:',
    [
      projection,
      {
        name: 'grow',
        summary: 'Copies the events to a topic with more partitions, makes a generation from it, and swaps to it.',
        load: () => import('./log/grow.ts'),
      },
      {
        name: 'follow',
        summary: 'Prints the changes of an organization as lines of JSON, as the API answers them, for ever.',
        load: () => import('./log/follow.ts'),
      },
    ],
  ],
  [
    'Keep and forget:',
    [
      {
        name: 'archive',
        summary:
          'Copies both topics into an archive: every offset, with checksums that show whether something is missing or changed.',
        load: () => import('./log/archive.ts'),
        commands: [
          {
            name: 'verify',
            summary: 'reads a whole archive again, and names the first thing that is wrong',
            load: () => import('./log/archive-verify.ts'),
          },
        ],
      },
      {
        name: 'restore',
        summary: 'Makes both topics anew from an archive: every record at its offset with its time.',
        load: () => import('./log/restore.ts'),
      },
      {
        name: 'close',
        summary: 'Writes one folder about a period for an auditor: records, control totals that reconcile, a page.',
        load: () => import('./evidence/close.ts'),
      },
      {
        name: 'verify',
        summary:
          'Checks an export, a copy of parts, a close or an archive against its signed manifest, and names what was changed, lost or added.',
        load: () => import('./evidence/verify.ts'),
      },
      {
        name: 'evidence',
        summary: 'Makes keys that sign manifests.',
        commands: [
          {
            name: 'key',
            summary: 'makes a key: the secret one in a file, the public one on standard output',
            load: () => import('./evidence/key.ts'),
          },
        ],
      },
      subjects,
    ],
  ],
]
