/**
 * Assembles a Kafka broker and an Elasticsearch node from Maven packages, once, into services/jvm/target/. The folder
 * is named after a hash of the sources, so that only changed sources are assembled again. A folder of that name is
 * always complete: each process builds in a folder of its own, and renames it as the last step.
 */
import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { isAlive, runTool } from './run-program.ts'
import type { Environment, ReportProgress } from './service.ts'

/** The poms, the Java sources and the logging configurations. */
export const sources = join(import.meta.dirname, 'jvm')
const target = join(sources, 'target')

/** Files that Maven downloads with an empty local repository, its own plugins included (counted). */
const downloads = 460

type AssemblyTools = {
  readonly jdkHome: string
  readonly maven: string
  readonly environment: Environment
  readonly progress: ReportProgress
}

/** Returns the assembled folder for the present sources; undefined if it has yet to be made. */
export const findAssembly = async (): Promise<string | undefined> => {
  const folder = await assemblyFolder()
  return (await exists(folder)) ? folder : undefined
}

/** Makes the folder and returns its path: `kafka/{lib,classes}`, `elasticsearch/{lib,classes,modules}`. */
export const assemble = async (tools: AssemblyTools): Promise<string> => {
  const folder = await assemblyFolder()
  const unfinished = `${folder}.${process.pid}`
  await removeLeftovers()
  await mkdir(unfinished, { recursive: true })
  try {
    await fetchJars(unfinished, tools)
    await Promise.all([buildKafka(unfinished, tools), buildElasticsearch(join(unfinished, 'elasticsearch'), tools)])
    await rename(unfinished, folder).catch(async failed => {
      // Another process was first: its result is the same.
      if (!(await exists(folder))) throw failed
    })
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
  return folder
}

const fetchJars = async (folder: string, { jdkHome, maven, environment, progress }: AssemblyTools): Promise<void> => {
  let done = 0
  const step = () => progress({ what: 'Maven packages', done, total: downloads })
  await runTool(maven, ['-B', '-f', join(sources, 'pom.xml'), 'package', `-Dassembly=${folder}`], {
    folder,
    environment: { ...environment, JAVA_HOME: jdkHome },
    onLine: line => {
      if (line.includes('Downloaded from')) done = Math.min(done + 1, downloads - 1)
      step()
    },
  })
  done = downloads
  step()
}

const buildKafka = (folder: string, tools: AssemblyTools): Promise<void> =>
  compile(join(folder, 'kafka'), 'classes', ['Lifeline.java', 'kafka/KafkaNode.java'], tools)

const buildElasticsearch = async (folder: string, tools: AssemblyTools): Promise<void> => {
  const root = join(folder, 'modules', 'root')
  await mkdir(root)
  await Promise.all([
    compile(folder, 'classes', ['Lifeline.java', 'elasticsearch/ElasticsearchNode.java'], tools),
    compile(folder, 'root', ['elasticsearch/RootModule.java'], tools),
  ])
  await jar(['--create', '--file', join(root, 'root.jar'), '-C', 'root', '.'], folder, tools)
  await writeFile(join(root, 'plugin-descriptor.properties'), rootDescriptor(await elasticsearchVersion(folder)))
  await unpackDescriptor(join(folder, 'modules', 'transport-netty4'), tools)
}

const rootDescriptor = (version: string): string =>
  [
    'name=root',
    'description=GET /',
    `version=${version}`,
    `elasticsearch.version=${version}`,
    'java.version=21',
    'classname=RootModule',
    '',
  ].join('\n')

const elasticsearchVersion = async (folder: string): Promise<string> => {
  const version = /^elasticsearch-(\d.*)\.jar$/
  const versions = (await readdir(join(folder, 'lib'))).flatMap(name => version.exec(name)?.[1] ?? [])
  if (versions[0] === undefined) throw new Error(`Maven put no Elasticsearch into ${folder}/lib`)
  return versions[0]
}

/** The server reads a module's descriptor from the module's folder, but the package has it inside its jar. */
const unpackDescriptor = async (module: string, tools: AssemblyTools): Promise<void> => {
  const inside = 'META-INF/es-plugins/transport-netty4/plugin-descriptor.properties'
  const archive = (await readdir(module)).find(name => name.startsWith('transport-netty4-'))
  if (archive === undefined) throw new Error(`Maven put no transport-netty4 into ${module}`)
  await jar(['--extract', '--file', archive, inside], module, tools)
  await rename(join(module, inside), join(module, basename(inside)))
  await rm(join(module, 'META-INF'), { recursive: true })
}

const compile = (folder: string, output: string, files: readonly string[], { jdkHome, environment }: AssemblyTools) =>
  runTool(
    join(jdkHome, 'bin', 'javac'),
    ['--release', '21', '-cp', join('lib', '*'), '-d', output, ...files.map(file => join(sources, file))],
    { folder, environment },
  )

const jar = (args: readonly string[], folder: string, { jdkHome, environment }: AssemblyTools) =>
  runTool(join(jdkHome, 'bin', 'jar'), args, { folder, environment })

const assemblyFolder = async (): Promise<string> => {
  const files = globSync(join(sources, '{*,*/*}.{xml,java}'))
  // The steps of this file shape the result, too.
  const parts = [...files.sort(), import.meta.filename]
  const hash = createHash('sha256')
  for (const file of parts) hash.update(relative(sources, file)).update(await readFile(file))
  return join(target, hash.digest('hex').slice(0, 16))
}

/** Removes folders of assemblies that were killed. */
const removeLeftovers = async (): Promise<void> => {
  for (const name of await readdir(target).catch(() => [])) {
    const builder = /^[0-9a-f]+\.(\d+)$/.exec(name)?.[1]
    if (builder !== undefined && !isAlive(Number(builder)))
      await rm(join(target, name), { recursive: true, force: true })
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
