import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.logbuffer.Header;
import org.agrona.CloseHelper;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.NoOpLock;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A member of a cluster that agrees on a sequence of commands: an archive, a consensus module and a
 * service, which use the media driver that AERON_DIR names.
 *
 * Commands are numbered from 1. The state is the number of the last command, and a checksum of all
 * commands so far. A command that was already applied, since a client sends it again if it gets no
 * answer, changes nothing. The answer is the number of the last command and the checksum.
 */
public final class Node
{
    private static final long RETRY_MS = 1_000;
    private static final int ATTEMPTS = 30;

    public static void main(final String[] args) throws Exception
    {
        final int member = Integer.parseInt(System.getenv("MEMBER"));
        final String[] hosts = System.getenv("HOSTS").split(",");
        final Semaphore end = new Semaphore(0);
        final AtomicBoolean isStopped = new AtomicBoolean();
        final ShutdownSignalBarrier.SignalHandler onStop = () ->
        {
            isStopped.set(true);
            end.release();
        };
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier(onStop))
        {
            // After a kill, the files of the archive and of the cluster seem to be in use for 10 s.
            for (int attempt = 1; !isStopped.get(); attempt++)
            {
                if (run(member, hosts, end, attempt == ATTEMPTS))
                {
                    attempt = 0;
                }
                if (!isStopped.get())
                {
                    Thread.sleep(RETRY_MS);
                }
            }
        }
    }

    /**
     * Run the member until it is to end, or until it has ended because it lost an archive in another
     * process. Returns false if it could not be started yet.
     */
    private static boolean run(
        final int member, final String[] hosts, final Semaphore end, final boolean isLast)
    {
        end.drainPermits();
        final String driver = System.getenv("AERON_DIR");
        final String host = hosts[member];
        final Archive.Context archive = new Archive.Context()
            .aeronDirectoryName(driver)
            .archiveDir(new File("archive"))
            .segmentFileLength(1 << 20)
            .controlChannel("aeron:udp?term-length=64k|endpoint=" + host + ":" + ports(member, 4))
            .localControlChannel("aeron:ipc?term-length=64k")
            .replicationChannel("aeron:udp?endpoint=" + host + ":0")
            .archiveClientContext(
                new AeronArchive.Context().controlResponseChannel("aeron:udp?endpoint=" + host + ":0"))
            .threadingMode(ArchiveThreadingMode.SHARED)
            .recordingEventsEnabled(false);
        final AeronArchive.Context client = new AeronArchive.Context()
            .aeronDirectoryName(driver)
            .lock(NoOpLock.INSTANCE)
            .controlRequestChannel(archive.localControlChannel())
            .controlRequestStreamId(archive.localControlStreamId())
            .controlResponseChannel(archive.localControlChannel());
        final ConsensusModule.Context consensus = new ConsensusModule.Context()
            .aeronDirectoryName(driver)
            .clusterDir(new File("cluster"))
            .clusterMemberId(member)
            .clusterMembers(members(hosts))
            .ingressChannel("aeron:udp?term-length=64k")
            .logChannel("aeron:udp?term-length=1m")
            .consensusChannel("aeron:udp?term-length=64k")
            .replicationChannel("aeron:udp?endpoint=" + host + ":0")
            .leaderHeartbeatTimeoutNs(TimeUnit.SECONDS.toNanos(2))
            .startupCanvassTimeoutNs(TimeUnit.SECONDS.toNanos(5))
            .archiveContext(client.clone())
            .terminationHook(end::release);
        final ClusteredServiceContainer.Context service = new ClusteredServiceContainer.Context()
            .aeronDirectoryName(driver)
            .clusterDir(new File("cluster"))
            .archiveContext(client.clone())
            .clusteredService(new Sequence())
            .terminationHook(end::release);
        // With ARCHIVE=external, another process is the archive of this host. A consensus module that
        // begins without it ends silently.
        final boolean hasArchive = !"external".equals(System.getenv("ARCHIVE"));
        try (AeronArchive known = hasArchive ? null : AeronArchive.connect(client.clone());
            Archive recorder = hasArchive ? Archive.launch(archive) : null;
            ConsensusModule module = ConsensusModule.launch(consensus);
            ClusteredServiceContainer container = ClusteredServiceContainer.launch(service))
        {
            CloseHelper.close(known);
            System.out.println("member " + member + " ready");
            end.acquireUninterruptibly();
        }
        catch (final RuntimeException error)
        {
            if (isLast)
            {
                throw error;
            }
            System.out.println("not started yet: " + error.getMessage());
            return false;
        }
        System.out.println("member " + member + " ended");
        return true;
    }

    /** Return the port of a member: ingress 0, consensus 1, log 2, catch-up 3, archive 4. */
    private static int ports(final int member, final int offset)
    {
        return 9_000 + 100 * member + offset;
    }

    private static String members(final String[] hosts)
    {
        final StringBuilder text = new StringBuilder();
        for (int member = 0; member < hosts.length; member++)
        {
            text.append(member);
            for (int offset = 0; offset <= 4; offset++)
            {
                text.append(',').append(hosts[member]).append(':').append(ports(member, offset));
            }
            text.append('|');
        }
        return text.toString();
    }

    private static final class Sequence implements ClusteredService
    {
        private static final int STATE_LENGTH = 16;
        private static final int OFFERS = 3;

        private final UnsafeBuffer state = new UnsafeBuffer(new byte[STATE_LENGTH]);
        private Cluster cluster;
        private long number;
        private long checksum;

        public void onStart(final Cluster cluster, final Image snapshot)
        {
            this.cluster = cluster;
            if (snapshot != null)
            {
                while (snapshot.poll((buffer, offset, length, header) -> load(buffer, offset), 1) == 0)
                {
                    cluster.idleStrategy().idle();
                }
            }
            System.out.println("started with command " + number);
        }

        private void load(final DirectBuffer buffer, final int offset)
        {
            number = buffer.getLong(offset);
            checksum = buffer.getLong(offset + 8);
        }

        public void onSessionMessage(
            final ClientSession session, final long timestamp, final DirectBuffer buffer,
            final int offset, final int length, final Header header)
        {
            final long wanted = buffer.getLong(offset);
            if (wanted == number + 1)
            {
                number = wanted;
                checksum = Checksum.next(checksum, wanted);
                System.out.println("applied " + number + " " + Long.toHexString(checksum));
            }
            else if (wanted > number)
            {
                System.out.println("MISSING " + (number + 1) + ", found " + wanted);
            }
            if (session == null)
            {
                return;
            }
            state.putLong(0, number);
            state.putLong(8, checksum);
            // A client that gets no answer asks again, so that a slow one cannot block the service.
            for (int attempt = 0; attempt < OFFERS && session.offer(state, 0, STATE_LENGTH) < 0; attempt++)
            {
                cluster.idleStrategy().idle();
            }
        }

        public void onTakeSnapshot(final ExclusivePublication snapshot)
        {
            state.putLong(0, number);
            state.putLong(8, checksum);
            while (snapshot.offer(state, 0, STATE_LENGTH) < 0)
            {
                cluster.idleStrategy().idle();
            }
        }

        public void onRoleChange(final Cluster.Role role)
        {
            System.out.println("role " + role);
        }

        public void onSessionOpen(final ClientSession session, final long timestamp)
        {
        }

        public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
        {
        }

        public void onTimerEvent(final long correlationId, final long timestamp)
        {
        }

        public void onTerminate(final Cluster cluster)
        {
        }
    }

    private static final class Checksum
    {
        /** Return the checksum of a sequence with one more command. */
        static long next(final long checksum, final long command)
        {
            return (checksum ^ command) * 0x100000001b3L + 0x9e3779b97f4a7c15L;
        }
    }
}
