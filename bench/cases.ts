/** What is asked of the servers: the cases of REST and those of tRPC. */
import type { Codec } from './service.ts'

/** How many pets the database holds before the first creation; their ids begin with 1. */
export const PETS = 100_000

/** Gives an integer from 0 to below `below`. */
export type Random = (below: number) => number

export interface Case {
  /** Its name on the command line. */
  id: string
  title: string
  /** A request: its path, or, where it creates, its body. */
  request(random: Random, codec: Codec): string
  /** What the answer says of pets, comparable between servers. */
  read(body: never, codec: Codec): unknown
  creates: boolean
  /** The status of every answer. */
  status: number
}

const rest = { creates: false, status: 200, read: (pets: unknown) => pets }

export const restCases: Case[] = [
  { ...rest, id: 'listPets', title: 'list 20', request: () => '/v1/pets' },
  {
    ...rest,
    id: 'listPetsByStatus',
    title: 'list 100 by status',
    request: () => '/v1/pets?status=available&limit=100',
  },
  {
    ...rest,
    id: 'getPet',
    title: 'getPet, random',
    request: (random) => `/v1/pets/${randomId(random)}`,
  },
  {
    id: 'createPet',
    title: 'createPet',
    request: (random) => JSON.stringify(randomPet(random)),
    read: (pet: object) => ({ ...pet, id: undefined }),
    creates: true,
    status: 201,
  },
]

type Call = { result: { data: never } }

const trpc = {
  creates: false,
  status: 200,
  read: (calls: Call | Call[], { decode }: Codec) =>
    [calls].flat().map(({ result }) => decode(result.data)),
}

export const trpcCases: Case[] = [
  {
    ...trpc,
    id: 'trpc.getPet',
    title: 'getPet',
    request: (random, { encode }) =>
      `/trpc/getPet?input=${json(encode({ petId: randomId(random) }))}`,
  },
  {
    ...trpc,
    id: 'trpc.listPets',
    title: 'listPets',
    request: (_random, { encode }) => `/trpc/listPets?input=${json(encode({ limit: 20 }))}`,
  },
  {
    ...trpc,
    id: 'trpc.getPet10',
    title: 'batch of ten getPet',
    request(random, { encode }) {
      const inputs = Array.from({ length: 10 }, () => encode({ petId: randomId(random) }))
      const names = inputs.map(() => 'getPet')
      return `/trpc/${names}?batch=1&input=${json(Object.fromEntries(inputs.entries()))}`
    },
  },
]

const json = (value: unknown) => encodeURIComponent(JSON.stringify(value))
const randomId = (random: Random) => 1 + random(PETS)

const STATUSES = ['available', 'available', 'available', 'pending', 'sold']

/** A new pet, of any of fifty categories; three of five are available. */
export function randomPet(random: Random): { name: string; categoryId: number; status: string } {
  const name = `Pet ${random(10 ** (2 + random(10)))}`
  return { name, categoryId: 1 + random(50), status: STATUSES[random(5)] ?? 'available' }
}

/** The same numbers each time, so that every server has the same data, and is asked the same. */
export function repeatable(): Random {
  let state = 1
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
