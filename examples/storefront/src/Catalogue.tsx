/** All animals, or those of one status, page after page as one scrolls. */

import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Page } from './Page.tsx'
import { PetCard } from './PetCard.tsx'
import { useTRPC } from './petstore.ts'
import { go, links, statuses } from './route.ts'
import { Trouble } from './Trouble.tsx'

/** Animals asked for at a time; the service gives 100 at most. */
const PAGE_SIZE = 24

export function Catalogue({ status }: { status: PetStatus | undefined }) {
  const trpc = useTRPC()
  const query = useInfiniteQuery(
    trpc.listPets.infiniteQueryOptions(
      { limit: PAGE_SIZE, ...(status && { status }) },
      // The next page begins after the last animal seen; a page that is not full is the last.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
    ),
  )
  // Read here, not when it is needed: so each change of it renders, and looks again what is near.
  const { isFetching } = query
  const pets = query.data?.pages.flat()

  return (
    <Page title="Our animals">
      <fieldset className="filter">
        <legend>Show</legend>
        {[undefined, ...statuses].map((choice) => (
          <label key={choice ?? 'all'}>
            <input
              type="radio"
              name="status"
              checked={choice === status}
              onChange={() => go(links.catalogue(choice))}
            />
            <span>{choice ?? 'all'}</span>
          </label>
        ))}
      </fieldset>
      <Trouble query={query} />
      {query.isPending && <Skeleton />}
      {pets?.length === 0 && (
        <div className="empty">
          <p>{status ? `No animal is ${status}.` : 'There is no animal yet.'}</p>
          <a className="button" href={links.add}>
            Add an animal
          </a>
        </div>
      )}
      {pets && pets.length > 0 && (
        <>
          <ul className="grid" aria-busy={query.isFetchingNextPage}>
            {pets.map((pet) => (
              <li key={String(pet.id)}>
                <PetCard pet={pet} />
              </li>
            ))}
          </ul>
          <footer className="end">
            <p role="status">{count(pets.length, query.hasNextPage)}</p>
            {query.hasNextPage && (
              <button
                type="button"
                className="quiet"
                ref={whenNear(() => {
                  if (!isFetching) void query.fetchNextPage()
                })}
                onClick={() => void query.fetchNextPage()}
              >
                {query.isFetchingNextPage ? 'Loading…' : 'Show more'}
              </button>
            )}
          </footer>
        </>
      )}
    </Page>
  )
}

function count(shown: number, more: boolean): string {
  if (more) return `${shown} animals so far`
  return shown === 1 ? 'One animal in all' : `${shown} animals in all`
}

/** A ref that calls `act` when the element is about to be scrolled into view. */
function whenNear(act: () => void) {
  return (element: Element | null) => {
    if (!element) return
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && act(), {
      rootMargin: '600px',
    })
    observer.observe(element)
    return () => observer.disconnect()
  }
}

function Skeleton() {
  return (
    <div className="grid" role="img" aria-label="Loading the animals">
      {Array.from({ length: 8 }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: nothing tells them apart, and none moves
        <div key={index} className="card skeleton" />
      ))}
    </div>
  )
}
