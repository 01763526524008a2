/** The queries of the pages, with placeholder data from the lists in the cache. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import type { InfiniteData, QueryClient } from '@tanstack/react-query'
import type { useTRPC } from './petstore.ts'

type Trpc = ReturnType<typeof useTRPC>

/** The animals of one request: whole rows of a grid with 2, 3 or 4 columns. */
const PAGE_SIZE = 48

/** The number of further animals on the page of one animal: one row on a wide screen. */
const MORE = 4

/** The animals of one status or of all, page by page. */
export const catalogue = (trpc: Trpc, status: PetStatus | undefined) =>
  trpc.listPets.infiniteQueryOptions(
    { limit: PAGE_SIZE, ...(status && { status }) },
    // The next page begins after the last animal seen; a page that is not full is the last.
    { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
  )

/** The input of listPets that returns one animal: getPet is deprecated and ends in 2030. */
export const onlyPet = (id: bigint) => ({ cursor: id - 1n, limit: 1 })

/** One animal, with the data of a list until the response arrives. */
export const onePet = (trpc: Trpc, queryClient: QueryClient, id: bigint) =>
  trpc.listPets.queryOptions(onlyPet(id), {
    placeholderData() {
      const pages = queryClient
        .getQueriesData<InfiniteData<Pet[]>>(trpc.listPets.infiniteQueryFilter())
        .flatMap(([, data]) => data?.pages ?? [])
      const rows = queryClient
        .getQueriesData<Pet[]>(trpc.listPets.queryFilter())
        .map(([, data]) => data ?? [])
      const pet = [...pages, ...rows].flat().find((known) => known.id === id)
      return pet && [pet]
    },
  })

/** The next animals in the catalogue, with the data of its list until the response arrives. */
export const nextPets = (
  trpc: Trpc,
  queryClient: QueryClient,
  after: bigint,
  status: PetStatus | undefined,
) =>
  trpc.listPets.queryOptions(
    { cursor: after, limit: MORE, ...(status && { status }) },
    {
      placeholderData: () =>
        queryClient
          .getQueryData(catalogue(trpc, status).queryKey)
          ?.pages.flat()
          .filter((pet) => pet.id > after)
          .slice(0, MORE),
    },
  )
